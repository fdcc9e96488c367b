import { describe, expect, it } from 'vitest'
import { progressLine } from '../../../src/cli/progress.ts'
import { runProgress as progressOf, writeSummary, writeUncounted } from '../../../src/cli/run-summary.ts'
import { NO_COUNTS } from '../../../src/control/crawls/task-ledger.ts'
import type { RunProgress, RunReport } from '../../../src/control/run/run-report.ts'

const runProgress = (state: Omit<RunProgress, 'stalledBy'>) => progressOf({ stalledBy: null, ...state })

describe('the progress of a run', () => {
  it('has a bar and a rate while URLs are under way', () => {
    const { text, ratio } = runProgress({ accepted: 8, final: 2, records: 3, elapsedMs: 4000 })
    expect(text).toBe('2 of 8 URLs done, 3 records, 0.5 URLs/s')
    expect(ratio).toBe(0.25)
  })

  it('has the rate of this run, where others did work before it', () => {
    const { text } = runProgress({ accepted: 800, final: 102, finalBefore: 100, records: 3, elapsedMs: 4000 })
    expect(text).toBe('102 of 800 URLs done, 3 records, 0.5 URLs/s')
  })

  it('says that it counts messages where it does: a URL that was put aside is several', () => {
    const { text } = runProgress({ accepted: 8, final: 2, unit: 'message', records: 3, elapsedMs: 4000 })
    expect(text).toBe('2 of 8 messages of urls and urls.delay done, 3 records, 0.5 messages/s')
  })

  it.each([
    ['disk', 'fetching rests: too little disk (fetch.minFreeDisk)'],
    ['state-store', 'fetching rests: no answer from the state store'],
  ] as const)('says while it lasts that fetching rests for the %s, and where a terminal still shows it', (stalledBy, reason) => {
    const progress = progressOf({ accepted: 1_000_000, final: 2, records: 3, elapsedMs: 4000, stalledBy })
    expect(progressLine(progress, String)).toBe(`2 of 1000000 URLs done, ${reason}, 3 records`)
    expect(progressLine(progress, String).slice(0, 79)).toContain(reason)
    expect(progress.fields).toMatchObject({ stalledBy })
  })

  it.each([
    ['registry', 'what has schemas not known yet waits: no answer from the schema registry'],
    ['blobs', 'large pages wait: no answer from the blob store'],
  ] as const)('says that a part of the work waits for the %s, and goes on with its bar, to the end of its pages', (stalledBy, reason) => {
    const going = progressOf({ accepted: 8, final: 2, records: 3, elapsedMs: 4000, stalledBy })
    expect([going.text, going.ratio]).toEqual([`2 of 8 URLs done, ${reason}, 3 records, 0.5 URLs/s`, 0.25])
    const unread = { extract: 3, frontier: 0, isReplaying: false }
    const done = progressOf({ accepted: 5, final: 5, records: 2, elapsedMs: 60_000, unread, stalledBy })
    expect(done.text).toBe(`5 of 5 URLs done, 3 pages wait for extraction, ${reason}, 2 records`)
  })

  it('says nothing of it where every URL is done', () => {
    expect(progressOf({ accepted: 5, final: 5, records: 2, elapsedMs: 10, stalledBy: 'disk' }).text).toBe('5 of 5 URLs done, 2 records')
  })

  it('says what is waited for where every URL is done, and shows no bar that is full', () => {
    const done = { accepted: 5, final: 5, records: 2, elapsedMs: 60_000 }
    const behind = runProgress({ ...done, unread: { extract: 3, frontier: 1, isReplaying: false } })
    expect(behind.text).toBe('5 of 5 URLs done, 3 pages wait for extraction, links of 1 page not followed yet, 2 records')
    expect(behind.ratio).toBeUndefined()
    expect(behind.fields).toMatchObject({ unread: { extract: 3 } })
    const openTransactions = ['scrape.html/0 from offset 4 on']
    const held = runProgress({ ...done, unread: { extract: 3, frontier: 0, isReplaying: false, openTransactions } })
    expect(held.text).toContain('a transaction is open in scrape.html/0 from offset 4 on: nobody reads further until it ends')
    const replaying = runProgress({ ...done, unread: { extract: 0, frontier: 0, isReplaying: true } })
    expect(replaying.text).toBe('5 of 5 URLs done, a replay in place has work left, 2 records')
    const away = runProgress({ ...done, away: 'html/3 has no leader' })
    expect(away.text).toBe("5 of 5 URLs done, whether all is done can't be seen: html/3 has no leader, 2 records")
  })

  it('says that what became of each URL is added up, how far that is, and that it may be left out', () => {
    const { text, ratio, phase } = runProgress({ accepted: 5, final: 5, records: 2, elapsedMs: 10, counting: { read: 250, of: 1_000 } })
    expect(text).toBe('2 records, adding up what became of each URL (Ctrl-C leaves that out)')
    expect([ratio, phase]).toEqual([0.25, 'counting'])
  })

  it('shows no bar before the first URL is taken', () => {
    expect(runProgress({ accepted: 0, final: 0, records: 0, elapsedMs: 10 }).ratio).toBeUndefined()
  })
})

/** Everything that is told, in its order. */
const contextInto = (lines: string[]) =>
  ({ note: (line: string) => void lines.push(line), err: (line: string) => void lines.push(line) }) as never

const known = {
  goesOn: false,
  records: 7,
  bad: [],
  badCount: 0,
  produced: 4,
  waiting: [],
  waitingCount: 0,
  interrupted: false,
  elapsedMs: 2_000,
}

describe('the summary of a run', () => {
  const summary = async (changed: Partial<RunReport>, unwritten?: string): Promise<string[]> => {
    const lines: string[] = []
    const audit = { ...NO_COUNTS, produced: 12, outcomes: { FETCHED: 12 }, malformed: 0, extract: [] }
    const nothingElse = { deadLetters: {}, lostCount: 0, lostMayBeDeleted: false, goneCount: 0 }
    await writeSummary(
      contextInto(lines),
      { ...known, crawlId: 'spring', audit, ...nothingElse, ...changed },
      async (line) => void lines.push(line),
      unwritten,
    )
    return lines
  }

  it('names how many URLs were counted whose messages are lost', async () => {
    expect(await summary({ lostCount: 3 })).toContain(
      '3 URLs more that the state store had counted: of these no message is left on the topics',
    )
  })

  it('takes none of them for lost that retention may have deleted', async () => {
    expect(await summary({ lostCount: 1, lostMayBeDeleted: true })).toContain(
      '1 URL more that the state store had counted: of these no message is left on the topics; those that had ended may have been deleted by retention',
    )
  })

  it('names how many pages retention deleted before they were read', async () => {
    expect(await summary({ goneCount: 2 })).toContain(
      '2 pages deleted by retention before extract could read them: their records are missing',
    )
  })

  it('has the pages that became dead letters, which are fetched all the same', async () => {
    expect(await summary({ deadLetters: { EXTRACT_TIMEOUT: 1, EXTRACT_FIELD_MISSING: 8 } })).toEqual([
      '12 URLs: 12 fetched',
      'dead letters of pages: 9 (EXTRACT_FIELD_MISSING 8, EXTRACT_TIMEOUT 1)',
      '7 records in 2.0s, crawl spring',
    ])
    expect(await summary({})).toHaveLength(2)
  })

  it('counts bad seeds, and names them with --quiet too', async () => {
    const bad = [{ line: 2, text: 'x', reason: '"x" is no URL' }]
    const lines: string[] = []
    const quiet = { note: () => undefined, err: (line: string) => void lines.push(line) } as never
    const audit = { ...NO_COUNTS, malformed: 0, extract: [] }
    const report = {
      ...known,
      crawlId: 'spring',
      audit,
      deadLetters: {},
      lostCount: 0,
      lostMayBeDeleted: false,
      goneCount: 0,
      bad,
      badCount: 2,
    }
    await writeSummary(quiet, report, async () => undefined)
    expect(lines).toEqual(['line 2: "x" is no URL', 'and 1 more bad lines'])
    expect(await summary({ bad, badCount: 1 })).toContain('1 bad URL skipped')
  })

  it('speaks of what is queued where a signal stopped it and something is', async () => {
    const audit = { ...NO_COUNTS, produced: 12, outcomes: { FETCHED: 4 }, inFlight: 8, malformed: 0, extract: [] }
    expect((await summary({ interrupted: true, audit })).at(-1)).toBe(
      'stopped before the crawl had ended; `millrace run --crawl spring` goes on with what is queued',
    )
    expect((await summary({ interrupted: true })).at(-1)).toBe(
      'stopped when every URL was done; `millrace run --crawl spring` works the pages that may wait for extraction',
    )
  })

  it('says that the reader of the records left, and how they are had, and nothing of what is queued', async () => {
    const lines = await summary({ interrupted: true }, 'it lacks records')
    expect(lines.at(-1)).toBe('the reader of --out - has left: it lacks records')
    expect(lines.join('\n')).not.toMatch(/stopped|queued/)
  })

  it('says where it has the URLs of former runs of the crawl too', async () => {
    expect((await summary({ goesOn: true }))[0]).toBe('12 URLs in all runs of the crawl: 12 fetched')
  })
})

describe('the summary of a run whose ledger was left out', () => {
  it('tells what is known, and how the rest is known', async () => {
    const lines: string[] = []
    const report = { ...known, crawlId: 'spring', audit: null, tasks: { accepted: 1_204, final: 1_203 } }
    await writeUncounted(contextInto(lines), report, async (line) => void lines.push(line))
    expect(lines).toEqual([
      '1,204 URLs: 1,203 done',
      '7 records in 2.0s, crawl spring',
      'what became of each URL was not added up; `millrace audit --crawl spring` does',
    ])
  })
})
