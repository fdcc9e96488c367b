import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { createPageRunner, type RunResult } from '../../../src/extract/page-runner.ts'
import { testJob, testPage } from '../../support/extraction.ts'

const PAGES = 12
const PAGE_CHARACTERS = 1_500_000
const MOST_BYTES = 1_000_000

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heapBytes(): number {
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

describe('records that wait', () => {
  it('C180: do not keep the pages that they were taken from', () => {
    const definition = 'name: book\nversion: 1\nkey: title\nfields: { title: h1 }\n'
    const runner = createPageRunner([{ kind: 'declarative', file: 'x.yaml', text: definition }])
    const held: RunResult[] = []
    const run = (index: number): void => {
      const html = `<h1>A title of thirty characters ${index}</h1><p>${'x'.repeat(PAGE_CHARACTERS)}</p>`
      runner.run(testJob(testPage(html), ['book']), (result) => held.push(result))
    }
    run(-1)
    const before = heapBytes()
    for (let index = 0; index < PAGES; index += 1) run(index)
    const grown = heapBytes() - before
    expect(held.at(-1)).toMatchObject({ kind: 'records', records: [{ key: `book/A title of thirty characters ${PAGES - 1}` }] })
    expect(grown).toBeLessThan(MOST_BYTES)
  })
})
