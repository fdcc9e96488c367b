import { describe, expect, it } from 'vitest'
import { writeAudit } from '../../../src/cli/ledger-session.ts'
import type { AuditReport } from '../../../src/control/crawls/audit.ts'
import { NO_COUNTS } from '../../../src/control/crawls/task-ledger.ts'

const totals = { pages: 12, records: 11, none: 1, deadLetters: 0 }
const report: AuditReport = {
  ...NO_COUNTS,
  crawls: [],
  malformed: 0,
  extract: [{ group: 'extract', noMatch: 0, gone: 0, extractors: [{ extractor: 'book:1', totals }] }],
}

async function written(audited: AuditReport, crawlId: string | undefined): Promise<string> {
  const lines: string[] = []
  await writeAudit({ out: async (line) => void lines.push(line) }, audited, crawlId)
  return lines.join('\n')
}

describe('what audit shows', () => {
  it('says of one crawl that the extractors have counted the pages of all', async () => {
    expect(await written(report, 'spring')).toMatch(
      /\nbook:1 +12 +11 +1 +0\nextractors are counted on the pages of all crawls, not of spring alone$/,
    )
    expect(await written({ ...report, extract: [{ group: 'extract', noMatch: 3, gone: 0, extractors: [] }] }, 'spring')).toMatch(
      /matched: 3\nextractors are counted on the pages of all crawls, not of spring alone$/,
    )
  })

  it('says how many pages retention deleted before an extract group had read them', async () => {
    expect(await written({ ...report, extract: [{ group: 'extract', noMatch: 0, gone: 5, extractors: [] }] }, undefined)).toMatch(
      /\npages that retention deleted before extract had read them: 5$/,
    )
  })

  it('does not say so of all crawls, or where no extractor has counted anything', async () => {
    expect(await written(report, undefined)).not.toContain('all crawls')
    expect(await written({ ...report, extract: [{ group: 'extract', noMatch: 0, gone: 0, extractors: [] }] }, 'spring')).not.toContain(
      'all crawls',
    )
  })

  it('tells every task that nobody can account for by its URL and where it was written, and how many more there are', async () => {
    const missing = ['a', 'b'].map((name, index) => ({
      taskId: `task-${name}`,
      crawlId: 'spring',
      url: `http://${name}.example/\u001b[2J`,
      topic: 'scrape.urls.high',
      partition: 3,
      offset: String(40 + index),
    }))
    const of = { ...report, produced: 1_009, outcomes: { FETCHED: 1_000 }, inFlight: 4, extract: [] }
    const lines = (await written({ ...of, difference: 5, missing }, 'spring')).split('\n')
    expect(lines.find((line) => line.startsWith('= difference'))).toMatch(/^= difference +5$/)
    expect(lines.slice(-3)).toEqual([
      expect.stringMatching(/^missing: http:\/\/a\.example\/.* \(task task-a, scrape\.urls\.high:3:40\)$/),
      expect.stringMatching(/^missing: http:\/\/b\.example\/.* \(task task-b, scrape\.urls\.high:3:41\)$/),
      'and 3 more',
    ])
    expect(lines.join('')).not.toContain('\u001b')
    expect(await written({ ...of, produced: 1_006, difference: 2, missing }, 'spring')).not.toContain('more')
  })

  it('shows crawl by crawl what adds up, where there are several', async () => {
    const crawl = (crawlId: string | null, produced: number, difference: number) => ({
      crawlId,
      produced,
      ended: produced - difference - 1,
      inFlight: 1,
      difference,
    })
    const crawls = [crawl('spring', 1_500, 2), crawl(null, 10, 0)]
    const table = (await written({ ...report, produced: 1_510, difference: 2, crawls }, undefined)).split('\n')
    const head = table.findIndex((line) => line.startsWith('CRAWL'))
    expect(table.slice(head, head + 3).map((line) => line.split(/ {2,}/))).toEqual([
      ['CRAWL', 'PRODUCED', 'ENDED', 'IN FLIGHT', 'DIFFERENCE'],
      ['spring', '1,500', '1,497', '1', '2'],
      ['(none)', '10', '9', '1', '0'],
    ])
    expect(await written({ ...report, crawls: crawls.slice(0, 1) }, 'spring')).not.toContain('CRAWL')
  })
})
