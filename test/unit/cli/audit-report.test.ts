import { describe, expect, it } from 'vitest'
import { writeAudit } from '../../../src/cli/ledger-session.ts'
import type { AuditReport } from '../../../src/control/audit.ts'
import { NO_COUNTS } from '../../../src/control/task-ledger.ts'

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
})
