import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import type { Clock } from '../kernel/clock.ts'
import { errorText } from '../kernel/errors.ts'
import { folderMark } from '../machine/folder-mark.ts'
import { identityOf, isAlive, isLocal, ownIdentity, type ProcessIdentity, signalTo } from '../machine/process-identity.ts'
import { writeJsonFile } from './atomic-file.ts'
import {
  type BrokerFolder,
  type BrokerPhase,
  boundLog,
  lastLines,
  type ProcessFile,
  readProcessFile,
  removeFile,
  START_LOCK,
  writeProcessFile,
} from './broker-folder.ts'
import { brokerAnswers } from './broker-probe.ts'
import { hasRoomToStart } from './disk-space.ts'
import { type HeldLock, tryLock } from './file-lock.ts'
import { endFormerRegistration, FENCE_AFTER_END_MS, FENCE_BEFORE_START_MS, isRegistered } from './former-registration.ts'
import { type LaunchSpec, placeArchive, readLaunchSpec } from './launch-spec.ts'
import { liveLeases } from './leases.ts'
import { runCommand } from './run-command.ts'
import { lostBroker } from './running-broker.ts'
import { logLine } from './supervisor-log.ts'

/**
 * Owns the broker in a process of its own, so that the broker outlives the command that started it, and no longer than its users.
 *
 * - Users are the live leases, and `keep` while `up` holds it. With none left it takes the start lock, looks again, and stops the broker;
 *   whoever wants to join holds that lock, so nobody is handed a broker that is about to end.
 * - A broker that was up and ends by itself (killed, out of memory) is started again while there are users.
 * - One that died of a full disk is started again when there is space.
 * - A broker whose supervisor was killed is adopted by the next supervisor, which one of the users starts, or the next command.
 * - When the whole folder is removed or moved, or another is put in its place, the broker ends; that other one is not touched.
 */
const START_POLL_MS = 25
/** On macOS each look at a process costs a call of ps. */
const POLL_MS = process.platform === 'linux' ? 200 : 1000
const STOP_MS = 30_000
const ROOM_POLL_MS = 1000
const MAX_RESTARTS = 5
const RESTART_WINDOW_MS = 300_000

type WatchEnd = 'stopped' | 'ended'

export async function superviseBroker(folder: BrokerFolder, clock: Clock, signal: AbortSignal): Promise<void> {
  const supervisor = new Supervisor(folder, clock, signal)
  try {
    await supervisor.run()
  } catch (error) {
    // Nobody would look after the broker any more, so it must not stay.
    logLine(`the supervisor failed: ${error instanceof Error ? error.stack : errorText(error)}`)
    await supervisor.stopBroker()
    throw error
  }
}

class Supervisor {
  readonly #folder: BrokerFolder
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #self = ownIdentity()
  readonly #mark: string
  readonly #spec: LaunchSpec
  #broker: ProcessIdentity | undefined
  #child: ChildProcess | undefined
  #phase: BrokerPhase = 'starting'
  /** Cuts the wait of the loop short when the child ends or a signal comes. */
  #wake = new AbortController()
  #startError = ''

  constructor(folder: BrokerFolder, clock: Clock, signal: AbortSignal) {
    this.#folder = folder
    this.#clock = clock
    this.#signal = signal
    this.#mark = folderMark(folder.path)
    this.#spec = readLaunchSpec(folder, this.#mark)
    signal.addEventListener('abort', () => this.#wake.abort(), { once: true })
  }

  async run(): Promise<void> {
    const restarts: number[] = []
    // Who starts a broker takes the note of the last one away; where there is one, its supervisor was killed and it has users.
    const hadUsers = readProcessFile(this.#folder) !== undefined
    removeFile(this.#folder.failure)
    if (!this.#adopt()) await this.#spawn()
    for (;;) {
      const end = await this.#watch()
      if (end === 'stopped') break
      await this.#afterEnd()
      // The first start is answered to whoever waits for it; one that was up has users, whatever ends it while it comes back.
      if (!hadUsers && this.#phase !== 'up' && restarts.length === 0) {
        this.#fail(`it ended before it answered${this.#startError}`)
        break
      }
      if (await this.#waitedForRoom()) restarts.length = 0
      const now = this.#clock.mono()
      restarts.push(now)
      if (restarts.filter((at) => now - at < RESTART_WINDOW_MS).length > MAX_RESTARTS) {
        this.#fail(`it ended by itself more than ${MAX_RESTARTS} times in five minutes`)
        break
      }
      if (this.#signal.aborted || !this.#hasUsers()) break
      logLine('the broker ended by itself and is started again')
      await this.#spawn()
    }
    this.#removeNote()
  }

  /**
   * A broker that died of a full disk would only die again until there is space, which says nothing of the broker: those ends don't
   * count. Shape: true when it had to wait; ends early when nobody is left to wait for it.
   */
  async #waitedForRoom(): Promise<boolean> {
    const path = this.#folder.path
    if (await hasRoomToStart(path)) return false
    logLine('the broker ended while the disk is full: it is started again when there is space')
    this.#wake = new AbortController()
    while (!this.#signal.aborted && this.#hasUsers() && !(await hasRoomToStart(path))) {
      this.#keepProcessFile()
      await this.#pause(ROOM_POLL_MS)
    }
    return true
  }

  /** Ends the broker: asks, and after its time kills. */
  async stopBroker(): Promise<void> {
    if (this.#broker === undefined || !isAlive(this.#broker)) return
    this.#phase = 'stopping'
    this.#save()
    signalTo(this.#broker, 'SIGTERM')
    if (!(await this.#endedWithin(STOP_MS))) {
      logLine('the broker did not end when asked and is killed')
      signalTo(this.#broker, 'SIGKILL')
      await this.#endedWithin(5000)
    }
    await this.#afterEnd()
  }

  /** A broker whose supervisor is gone: watched by its pid, since it is no child of ours. */
  #adopt(): boolean {
    const file = readProcessFile(this.#folder)
    const isNoted = file !== undefined && file !== 'broken' && isLocal(file.broker) && isAlive(file.broker)
    const broker = isNoted ? file.broker : lostBroker(this.#folder)
    if (broker === undefined) return false
    this.#broker = broker
    this.#save()
    return true
  }

  async #spawn(): Promise<void> {
    this.#wake = new AbortController()
    this.#phase = 'starting'
    if (this.#spec.container !== '') await this.#removeContainer()
    // Whoever looks meanwhile waits for a broker that starts; before the first one there is nothing to write down.
    if (this.#broker !== undefined) this.#save()
    if ((await this.#fence(FENCE_BEFORE_START_MS)) === 'failed' && !this.#signal.aborted)
      logLine('the broker could not be taken out of service before its start')
    if (this.#signal.aborted) return
    const log = openSync(this.#folder.log, 'a')
    try {
      const child = spawn(this.#spec.command, [...this.#spec.args], { cwd: this.#folder.path, stdio: ['ignore', log, log] })
      this.#child = child
      child.once('exit', () => this.#wake.abort())
      await new Promise<void>((resolve) => {
        child.once('spawn', resolve)
        child.once('error', (error) => {
          this.#startError = `: ${error.message}`
          resolve()
        })
      })
      this.#broker = child.pid === undefined ? undefined : identityOf(child.pid)
    } finally {
      closeSync(log)
    }
    this.#save()
  }

  /** A broker that has ended is out of service before it comes again. */
  async #fence(limitMs: number): Promise<'fenced' | 'was-fenced' | 'failed'> {
    const { command, fencingArgs } = this.#spec
    const { data, path, fenced } = this.#folder
    if (fencingArgs.length === 0 || !isRegistered({ data, note: fenced })) return 'was-fenced'
    const run = { command, args: fencingArgs, mark: this.#mark, data, note: fenced, cwd: path, limitMs }
    try {
      return await endFormerRegistration({ ...run, clock: this.#clock, signal: this.#signal })
    } catch (error) {
      // On a full disk. The next start does it once more.
      logLine(`${fenced} could not be written: ${errorText(error)}`)
      return 'failed'
    }
  }

  async #watch(): Promise<WatchEnd> {
    for (let turn = 0; ; turn++) {
      if (this.#signal.aborted) {
        await this.stopBroker()
        return 'stopped'
      }
      if (!this.#brokerRuns()) return 'ended'
      if (this.#phase === 'starting' && (await brokerAnswers(this.#spec))) {
        this.#phase = 'up'
        this.#save()
      }
      if (!this.#hasUsers() && (await this.#stopUnlessJoined())) return 'stopped'
      this.#keepProcessFile()
      if (turn % 50 === 49) this.#boundLogs()
      await this.#pause(this.#phase === 'starting' ? START_POLL_MS : POLL_MS)
    }
  }

  /** Someone may be joining: only who holds the start lock may decide. */
  async #stopUnlessJoined(): Promise<boolean> {
    let lock: HeldLock | undefined
    if (this.#isInPlace()) {
      const attempt = tryLock(this.#folder.path, START_LOCK, 'the supervisor of the broker')
      if (attempt.kind === 'refused') return false
      lock = attempt.lock
    }
    try {
      if (this.#hasUsers()) return false
      await this.stopBroker()
      // Now nobody waits to begin. Else the next start does it.
      if (this.#isInPlace()) await this.#fence(FENCE_AFTER_END_MS)
      this.#removeNote()
      if (this.#isInPlace()) removeFile(this.#folder.keep)
      return true
    } finally {
      lock?.release()
    }
  }

  #hasUsers(): boolean {
    return this.#isInPlace() && (existsSync(this.#folder.keep) || liveLeases(this.#folder).length > 0)
  }

  /** The folder that it began in is still where it was. */
  #isInPlace(): boolean {
    return folderMark(this.#folder.path) === this.#mark
  }

  #brokerRuns(): boolean {
    if (this.#child !== undefined) return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
    return this.#broker !== undefined && isAlive(this.#broker)
  }

  async #endedWithin(ms: number): Promise<boolean> {
    const deadline = this.#clock.mono() + ms
    while (this.#brokerRuns()) {
      if (this.#clock.mono() >= deadline) return false
      await this.#clock.sleep(25)
    }
    return true
  }

  /** Puts away what the ended broker leaves behind. */
  async #afterEnd(): Promise<void> {
    if (this.#spec.container !== '') await this.#removeContainer()
    if (this.#spec.archiveWritten === '' || !existsSync(this.#spec.archiveWritten)) return
    // Java writes the archive as its last act, so a run that was killed has either none or half of one.
    const clean = this.#child?.exitCode === 0 || this.#child?.exitCode === 143
    if (clean) placeArchive(this.#spec)
    else removeFile(this.#spec.archiveWritten)
  }

  async #removeContainer(): Promise<void> {
    await runCommand('docker', ['rm', '--force', this.#spec.container], { timeoutMs: 30_000 })
  }

  #boundLogs(): void {
    boundLog(this.#folder.log)
    boundLog(this.#folder.supervisorLog)
  }

  /** Whoever looks for the broker looks there: a file that was removed or damaged is written again. */
  #keepProcessFile(): void {
    const file = readProcessFile(this.#folder)
    const intact = file !== undefined && file !== 'broken' && file.supervisor.start === this.#self.start && file.phase === this.#phase
    if (!intact) this.#save()
  }

  #save(): void {
    if (this.#broker === undefined || !this.#isInPlace()) return
    const file: ProcessFile = {
      phase: this.#phase,
      clusterId: this.#spec.clusterId,
      port: this.#spec.port,
      supervisor: this.#self,
      broker: this.#broker,
    }
    try {
      writeProcessFile(this.#folder, this.#mark, file)
    } catch (error) {
      // A full disk must not end the watch; the next turn writes the file again.
      logLine(`${this.#folder.process} could not be written: ${errorText(error)}`)
    }
  }

  #removeNote(): void {
    if (this.#isInPlace()) removeFile(this.#folder.process)
  }

  #fail(reason: string): void {
    logLine(`the broker failed: ${reason}`)
    if (!this.#isInPlace()) return
    writeJsonFile(this.#folder.failure, { reason, log: lastLines(this.#folder.log, 15) })
  }

  async #pause(ms: number): Promise<void> {
    try {
      await this.#clock.sleep(ms, this.#wake.signal)
    } catch (error) {
      // Woken early, which is what the signal is for.
      if (!this.#wake.signal.aborted) throw error
    }
  }
}
