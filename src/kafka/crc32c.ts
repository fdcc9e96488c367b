/** Tables of the polynomial of Castagnoli, reflected: the first for one byte, each further one for a byte that stands one place earlier. */
const SLICES = 16
const TABLES = sliceTables()

/**
 * CRC-32C of all bytes, as a number of 32 bits without sign. Sixteen bytes at a time (slicing by 16): every batch that is written has
 * one, and a byte at a time takes longer than everything else that is done with a page.
 */
export function crc32c(bytes: Uint8Array): number {
  const tables = TABLES
  const length = bytes.length
  let crc = -1
  let at = 0
  for (const end = length - SLICES; at <= end; at += SLICES) {
    crc =
      at32(tables, 0xf00 + ((crc ^ at8(bytes, at)) & 0xff)) ^
      at32(tables, 0xe00 + (((crc >>> 8) ^ at8(bytes, at + 1)) & 0xff)) ^
      at32(tables, 0xd00 + (((crc >>> 16) ^ at8(bytes, at + 2)) & 0xff)) ^
      at32(tables, 0xc00 + ((crc >>> 24) ^ at8(bytes, at + 3))) ^
      at32(tables, 0xb00 + at8(bytes, at + 4)) ^
      at32(tables, 0xa00 + at8(bytes, at + 5)) ^
      at32(tables, 0x900 + at8(bytes, at + 6)) ^
      at32(tables, 0x800 + at8(bytes, at + 7)) ^
      at32(tables, 0x700 + at8(bytes, at + 8)) ^
      at32(tables, 0x600 + at8(bytes, at + 9)) ^
      at32(tables, 0x500 + at8(bytes, at + 10)) ^
      at32(tables, 0x400 + at8(bytes, at + 11)) ^
      at32(tables, 0x300 + at8(bytes, at + 12)) ^
      at32(tables, 0x200 + at8(bytes, at + 13)) ^
      at32(tables, 0x100 + at8(bytes, at + 14)) ^
      at32(tables, at8(bytes, at + 15))
  }
  for (; at < length; at += 1) crc = at32(tables, (crc ^ at8(bytes, at)) & 0xff) ^ (crc >>> 8)
  return ~crc >>> 0
}

function at8(bytes: Uint8Array, index: number): number {
  return bytes[index] as number
}

function at32(tables: Int32Array, index: number): number {
  return tables[index] as number
}

function sliceTables(): Int32Array {
  const tables = new Int32Array(SLICES * 256)
  for (let byte = 0; byte < 256; byte += 1) {
    let crc = byte
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0)
    tables[byte] = crc
  }
  for (let index = 256; index < tables.length; index += 1) {
    const before = at32(tables, index - 256)
    tables[index] = at32(tables, before & 0xff) ^ (before >>> 8)
  }
  return tables
}
