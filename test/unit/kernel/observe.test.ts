import { describe, expect, it } from 'vitest'
import { createObserver, type Logger } from '../../../src/kernel/observe.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const full = (): never => {
  throw new Error('ENOSPC: no space left on device, write')
}

describe('an observer', () => {
  it('never throws into the one who tells, whatever its log and its metrics do', () => {
    const logger: Logger = { debug: full, info: full, warn: full, error: full }
    const observer = createObserver({ logger, metrics: { record: full }, clock: new ManualClock() })
    observer.emit('SendRetried', { reason: 'timeout' })
    observer.child({ component: 'fetch' }).emit('DiskLow')
  })

  it('writes the line of an event whose metric fails, and says once that this one stands still', () => {
    const lines: string[] = []
    const write = (_: object, message: string): void => void lines.push(message)
    const logger: Logger = { debug: write, info: write, warn: write, error: write }
    const observer = createObserver({ logger, metrics: { record: full }, clock: new ManualClock() })
    observer.emit('StateStoreLost')
    observer.emit('SendRetried', { reason: 'timeout' })
    expect(lines).toEqual([
      'a metric can not be counted, and stands still',
      'the connection to the state store was lost',
      expect.any(String),
    ])
  })

  it('writes its next line where there is room again', () => {
    const lines: string[] = []
    let isFull = true
    const write = (_: object, message: string): void => (isFull ? full() : void lines.push(message))
    const observer = createObserver({ logger: { debug: write, info: write, warn: write, error: write }, clock: new ManualClock() })
    observer.emit('StateStoreLost')
    isFull = false
    observer.emit('StoreResumed')
    expect(lines).toEqual(['the state store answers again'])
  })
})
