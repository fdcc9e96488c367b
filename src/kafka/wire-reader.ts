/** Reads an answer of a broker from its front. Source: Kafka protocol, primitive types; `compact` and tags stand in flexible versions. */
export class WireReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  skip(count: number): void {
    this.#at += Math.max(0, count)
  }

  int16(): number {
    this.#at += 2
    return this.#bytes.readInt16BE(this.#at - 2)
  }

  int32(): number {
    this.#at += 4
    return this.#bytes.readInt32BE(this.#at - 4)
  }

  int64(): bigint {
    this.#at += 8
    return this.#bytes.readBigInt64BE(this.#at - 8)
  }

  bytes(count: number): Buffer {
    return this.#bytes.subarray(this.#at, this.#at + Math.max(0, count))
  }

  /** Of an array or a text; -1 for none. */
  compactLength(): number {
    return this.#varint() - 1
  }

  compactText(): string | null {
    const length = this.compactLength()
    if (length < 0) return null
    this.#at += length
    return this.#bytes.toString('utf8', this.#at - length, this.#at)
  }

  /** Passes over tagged fields. */
  tags(): void {
    for (let left = this.#varint(); left > 0; left -= 1) {
      this.#varint()
      this.skip(this.#varint())
    }
  }

  #varint(): number {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = this.#bytes.readUInt8(this.#at)
      this.#at += 1
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
}
