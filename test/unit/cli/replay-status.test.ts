import { describe, expect, it } from 'vitest'
import { deletedText, replaysTable, shadowSummary, statusText } from '../../../src/cli/replay-status.ts'
import { retentionText } from '../../../src/cli/topics-session.ts'
import type { ReplayStatus } from '../../../src/control/replay/replay-status.ts'

const open: ReplayStatus = {
  replayId: 'r1',
  groupId: 'scrape.extract',
  extractor: 'book',
  version: 2,
  state: 'open',
  members: 1,
  offsets: 1,
  doneOffsets: 0,
  totals: { pages: 1, records: 1, none: 0, deadLetters: 1 },
  at: 0,
  partitions: [{ partition: 0, phase: 'replaying', from: '0', until: '1', position: '0' }],
}

describe('what `replay status` says of a replay', () => {
  it('is that nobody works on it, where its only worker is gone', () => {
    expect(statusText(open)).not.toContain('nobody')
    expect(statusText({ ...open, members: 0 })).toContain(
      'nobody works on it: no member of scrape.extract runs; it goes on once `millrace run` or `millrace extract` is started with that version',
    )
    expect(statusText({ ...open, members: 0, shadowTopic: 't' })).toContain(
      'nobody works on it: its process has ended; `millrace replay run --shadow --id r1` with the same flags goes on',
    )
    const { members: _, ...done } = open
    expect(statusText({ ...done, state: 'done' })).not.toContain('nobody')
    // It waits for the one before it, whoever works.
    expect(statusText({ ...open, members: 0, behind: 'r0' })).not.toContain('nobody')
  })

  it('is what retention took from it before it was read', () => {
    expect(statusText({ ...open, gone: 127 })).toContain('127 pages of the range are gone: retention deleted them before they were read')
    expect(statusText({ ...open, gone: 1 })).toContain('1 page of the range is gone: retention deleted it before it was read')
    expect(statusText(open)).not.toContain('gone')
  })

  it('is seen in the list', () => {
    const states = (status: ReplayStatus): string | undefined => replaysTable([status]).split('\n')[1]
    expect(states(open)).toMatch(/ open +0 +1 +1$/)
    expect(states({ ...open, members: 0 })).toMatch(/ no worker +0 +1 +1$/)
    expect(states({ ...open, members: 0, behind: 'r0' })).toMatch(/ behind r0 +0 +1 +1$/)
  })

  it('speaks of one as of one', () => {
    expect(statusText(open)).toContain('0 of 1 offset\n1 page read, 1 record, 0 without, 1 dead letter\n')
  })
})

it('keys that were deleted are counted', () => {
  expect(deletedText({ keys: ['a'], topic: 'records' })).toBe('1 key of records deleted')
  expect(deletedText({ keys: [], topic: 'records' })).toBe('0 keys of records deleted')
})

describe('what a shadow says when it is done', () => {
  const report = {
    topic: 't',
    pages: 1n,
    records: 1,
    deadLetters: 1,
    gone: 0,
    interrupted: false,
    cancelled: false,
    elapsedMs: 1_500,
    resumed: false,
  }

  it('speaks of one as of one, and of the time since it went on', () => {
    expect(shadowSummary(report)).toBe('1 page read, 1 record, 1 dead letter in 1.5s; records are in t')
    expect(shadowSummary({ ...report, records: 2, resumed: true })).toBe(
      '1 page read, 2 records, 1 dead letter in 1.5s since it went on; records are in t',
    )
    expect(shadowSummary({ ...report, gone: 1 })).toBe(
      '1 page read, 1 record, 1 dead letter in 1.5s; records are in t\n1 page of the range is gone: retention deleted it before it was read',
    )
  })
})

describe('a retention', () => {
  it('is told as it would be written', () => {
    expect([undefined, '-1', '5000', '90000', '1209600000', '1500'].map(retentionText)).toEqual([
      '',
      'for ever',
      '5s',
      '90s',
      '14d',
      '1500ms',
    ])
  })
})
