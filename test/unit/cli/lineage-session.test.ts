import { expect, it } from 'vitest'
import type { CommandContext } from '../../../src/cli/context.ts'
import { writeLineage } from '../../../src/cli/lineage-session.ts'
import type { Lineage } from '../../../src/control/inspect/lineage.ts'

it('what a page or a task says begins no line of its own', async () => {
  const forged = 'x\nrecord   forged'
  const at = { topic: 'html', partition: 0, offset: 1n }
  const page = { finalUrl: forged, status: 200, redirects: [{ status: 301, url: forged, location: forged }] }
  const found = {
    traceId: forged,
    records: [
      { at, tombstone: null, record: { recordId: 'r', extractor: 'book', extractorVersion: 1, replayId: null, entityKey: forged } },
    ],
    page: {
      at,
      page: {
        ...page,
        headers: [{ name: 'x', value: forged }],
        bodyLength: 1,
        bodySha256: 's',
        truncated: 'size',
        attempt: 1,
        remoteAddress: null,
      },
    },
    deadLetters: [{ partition: 0, offset: 1n, info: { code: 'EXTRACT_FAILED', message: forged }, resolved: undefined }],
    pageAt: at,
    task: { at, task: { taskId: 't', url: forged, crawlId: forged, depth: 0, parentUrl: forged } },
    outcomes: [{ at, outcome: { kind: 'FETCHED', reason: forged, attempt: 1 } }],
    timing: [],
  } as unknown as Lineage
  const lines: string[] = []
  const context = { out: async (line: string) => void lines.push(...line.split('\n')) } as unknown as CommandContext
  await writeLineage(context, found)
  expect(lines.filter((line) => line.startsWith('record'))).toEqual(['record   r  book version 1'])
  expect(lines.filter((line) => line.includes('forged'))).toHaveLength(9)
  expect(lines.find((line) => line.startsWith('page'))).toContain(' (truncated: size), ')
})
