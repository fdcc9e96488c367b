import { type LogAccess, readLog } from '../../kafka/log-reader.ts'
import { isMillraceError } from '../../kernel/errors.ts'
import type { MessageCodec } from '../../message/codec.ts'
import { isMarkSubject } from '../../message/command.ts'
import { ResolvedLetters } from '../../message/dead-letter-marks.ts'
import type { TopicNames } from '../../message/topics.ts'

/** Where marks are read. */
interface MarksSource extends LogAccess {
  readonly topics: Pick<TopicNames, 'control'>
  readonly codec: MessageCodec
}

/**
 * Which dead letters are dealt with, as `control` says. A mark commits in the transaction of what it is about, so marks are read for
 * themselves, committed ones alone: whoever waits for commands must not wait for a transaction. Read on from where it ended each time.
 */
export class DeadLetterMarksLog {
  readonly #source: MarksSource
  readonly #resolved = new ResolvedLetters()
  #position: bigint | 'earliest' = 'earliest'
  #reading: Promise<unknown> = Promise.resolve()

  constructor(source: MarksSource) {
    this.#source = source
  }

  /** With what was done a moment ago. Errors: as of `readLog`. */
  now(): Promise<ResolvedLetters> {
    const reading = this.#reading.then(() => this.#readOn())
    this.#reading = reading.catch(() => undefined)
    return reading
  }

  async #readOn(): Promise<ResolvedLetters> {
    const { client, clock, observer, topics, codec } = this.#source
    const from = new Map([[topics.control, new Map([[0, this.#position]])]])
    for await (const event of readLog({ client, clock, observer, from })) {
      if (event.kind === 'batch') {
        const marks = event.messages.filter(({ key }) => key !== null && isMarkSubject(key.toString('utf8')))
        await codec.ensureSchemas(marks.map(({ value }) => value))
        for (const { value } of marks) this.#add(value)
      }
      this.#position = event.kind === 'out-of-range' ? event.to : event.position
    }
    return this.#resolved
  }

  /** What we can't read we can't know: a newer release may have written it. */
  #add(value: Buffer | null): void {
    try {
      if (value !== null) this.#resolved.add(this.#source.codec.decode('Command', value))
    } catch (error) {
      if (!isMillraceError(error)) throw error
    }
  }
}
