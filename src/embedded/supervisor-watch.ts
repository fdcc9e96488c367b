import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import type { Clock } from '../kernel/clock.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import { folderMark } from '../machine/folder-mark.ts'
import { describeProcess, isAlive, isLocal, type ProcessIdentity } from '../machine/process-identity.ts'
import { readJsonFile } from './atomic-file.ts'
import { type BrokerFolder, readProcessFile, START_LOCK } from './broker-folder.ts'
import { noRoomError } from './disk-space.ts'
import { tryLock } from './file-lock.ts'
import { FENCING_MS } from './former-registration.ts'
import { spawnSupervisor } from './supervisor-process.ts'

const LOOK_MS = 1000
/** Looks in a row that find no note and nobody who starts the broker, until it is taken for lost. */
const LOST_LOOKS = 5
/** It notes itself once its broker runs, and one that was killed is taken out of service before. */
const NOTED_MS = FENCING_MS + 16_000
const POLL_MS = 25

interface WatchOptions {
  readonly clock: Clock
  readonly observer: Observer
  readonly owner: string
}

/**
 * Whoever uses the broker looks after the supervisor, which looks after the broker: where the supervisor was killed, the first user to
 * see it starts another, which goes on with the broker or starts it again. Without that, users of a broker that ends as well would wait
 * for ever. A supervisor that ended in order (it gave up, or was told to) is not started again, but said. So is a folder that is no longer
 * the one whose broker is used: who goes on would write his positions into another cluster, which may have the same id and port.
 */
export class SupervisorWatch {
  readonly #folder: BrokerFolder
  readonly #options: WatchOptions
  readonly #mark: string
  /** Of the folder, which keeps its mark: without it a new one in its place may get the same. */
  readonly #handle: number
  #disarm: () => void = () => undefined
  #looking: Promise<void> = Promise.resolve()
  #released = false
  /** Another folder stands in its place, or none: nothing there is ours, and it was told. */
  #isGone = false
  /** It was told. */
  #isResting = false
  /** Looks in a row that found no note of a broker; a command that starts one takes it away first, and holds the lock meanwhile. */
  #missing = 0
  #fail: (error: MillraceError) => void = () => undefined
  /** Rejects when the broker has ended and nobody starts it again: KAFKA_LOST with the reason. Never resolves. */
  readonly lost = new Promise<never>((_, reject) => {
    this.#fail = reject
  })

  /** The folder is there. Errors: those of the file system. */
  constructor(folder: BrokerFolder, options: WatchOptions) {
    this.#folder = folder
    this.#options = options
    this.#handle = openSync(folder.path, 'r')
    this.#mark = folderMark(folder.path)
    // Nobody has to listen; the event says it as well.
    this.lost.catch(() => undefined)
    this.#arm()
  }

  /** Shape: resolves when no look is under way; a broker that runs has a supervisor then, which ends it with its last user. */
  async release(): Promise<void> {
    if (this.#released) return
    this.#released = true
    this.#disarm()
    await this.#looking
    try {
      const file = readProcessFile(this.#folder)
      if (file !== undefined && file !== 'broken' && isAlive(file.broker)) await this.#tryLook()
    } finally {
      closeSync(this.#handle)
    }
  }

  #arm(): void {
    if (this.#released || this.#isGone) return
    const look = (): void => {
      this.#looking = this.#tryLook().finally(() => this.#arm())
    }
    this.#disarm = this.#options.clock.timer(LOOK_MS, look, { unref: true })
  }

  /** A look that fails (no file handle is free, or the disk is full) is no reason to end what the broker is used for. */
  async #tryLook(): Promise<void> {
    try {
      await this.#look()
    } catch (error) {
      this.#options.observer.emit('BrokerLookFailed', { reason: errorText(error), folder: this.#folder.path })
    }
  }

  async #look(): Promise<void> {
    if (this.#isGone) return
    const mark = folderMark(this.#folder.path)
    // One that is missing may come back: the supervisor that ended is started again then.
    if (mark !== this.#mark && mark !== '') return this.#tellGone()
    const file = readProcessFile(this.#folder)
    // A note that is broken or of another host is for the next command to judge.
    if (file === 'broken' || (file !== undefined && !isLocal(file.supervisor))) return
    this.#missing = file === undefined ? this.#missing + 1 : 0
    if (file !== undefined && isAlive(file.supervisor)) return isAlive(file.broker) ? this.#tellBack() : this.#tellRest()
    if (file === undefined && this.#missing !== LOST_LOOKS) return
    if (mark === '') return this.#tellGone()
    const attempt = tryLock(this.#folder.path, START_LOCK, this.#options.owner)
    if (attempt.kind === 'refused') {
      // Whoever holds it starts the broker, or finds the same.
      this.#missing = 0
      return
    }
    try {
      const now = readProcessFile(this.#folder)
      if (now === undefined && file === undefined) this.#tellEnd()
      else if (now !== undefined && now !== 'broken' && !isAlive(now.supervisor)) await this.#startAnother(now.supervisor)
    } finally {
      attempt.lock.release()
    }
  }

  /** Until the note names it: so long nobody else may look. One that ends before is for the next look. */
  async #startAnother(dead: ProcessIdentity): Promise<void> {
    const { clock, observer } = this.#options
    const supervisor = spawnSupervisor(this.#folder)
    const hasEnded = endOf(supervisor)
    const deadline = clock.mono() + NOTED_MS
    while (!hasEnded() && clock.mono() < deadline) {
      const file = readProcessFile(this.#folder)
      if (file !== undefined && file !== 'broken' && file.supervisor.pid === supervisor.pid) {
        const what = `the supervisor of the broker (${describeProcess(dead)}) was gone: started another`
        observer.emit('BrokerRepaired', { what, folder: this.#folder.path })
        return
      }
      await clock.sleep(POLL_MS)
    }
  }

  /** Its supervisor starts it again once there is room. */
  async #tellRest(): Promise<void> {
    const full = await noRoomError(this.#folder.path)
    if (full === undefined) return
    this.#isResting = true
    this.#options.observer.emit('BrokerRests', { reason: full.message, folder: this.#folder.path })
  }

  #tellBack(): void {
    if (this.#isResting) this.#options.observer.emit('BrokerBack', { folder: this.#folder.path })
    this.#isResting = false
  }

  #tellEnd(): void {
    const file = readJsonFile(this.#folder.failure)
    const noted = file.kind === 'value' ? (file.value as { reason?: unknown }).reason : undefined
    this.#tellLost(typeof noted === 'string' ? noted : 'its supervisor was told to end', `; its log is ${this.#folder.log}`)
  }

  /** What is noted and logged there now is of another broker. */
  #tellGone(): void {
    this.#isGone = true
    this.#tellLost('its data folder was moved, removed or replaced', '')
  }

  #tellLost(reason: string, hint: string): void {
    const { log, path } = this.#folder
    this.#options.observer.emit('BrokerLost', { reason, log, folder: path })
    const message = `Apache Kafka in ${path} has ended and is not started again: ${reason}${hint}`
    this.#fail(new MillraceError('KAFKA_LOST', message, { context: { folder: path } }))
  }
}

function endOf(child: ChildProcess): () => boolean {
  let ended = false
  for (const name of ['exit', 'error'] as const)
    child.once(name, () => {
      ended = true
    })
  return () => ended
}
