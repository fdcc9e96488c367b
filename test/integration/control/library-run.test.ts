import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Millrace } from '../../../src/index.ts'
import { Deployment } from '../../support/deployment.ts'
import { eventually } from '../../support/eventually.ts'
import { LinkedSite } from '../../support/linked-site.ts'
import { brokers } from '../../support/services.ts'

const PAGE = 'name: page\nversion: 1\nfields: { title: title }\n'

const site = new LinkedSite({ hosts: 1, pagesPerHost: 40, latencyMs: () => 0 })
let deployment: Deployment

beforeAll(async () => {
  await site.start()
  deployment = await Deployment.open()
})
afterAll(async () => {
  await deployment.close()
  await site.stop()
})

const open = (): Millrace =>
  new Millrace({
    brokers: brokers(),
    data: deployment.dataDir,
    extractors: [deployment.file('page.yaml', PAGE)],
    'topics.prefix': deployment.prefix,
    'fetch.allowAddresses': '127.0.0.0/8',
    'fetch.resolve': '*.example=127.0.0.1',
  })

/** One URL, and an input that does not end: nor does the crawl by itself. */
async function* oneAndOpen(): AsyncGenerator<string> {
  yield site.urls()[0]?.url ?? ''
  await new Promise(() => undefined)
}

describe('a run whose records can not be taken', () => {
  it('fails with the reason, and its URLs are read no further', async () => {
    const millrace = open()
    let isLeft = false
    let read = 0
    async function* endless(): AsyncGenerator<string> {
      try {
        for (;;) {
          yield site.urls()[read % 40]?.url ?? ''
          read += 1
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
      } finally {
        isLeft = true
      }
    }
    const onRecord = (): Promise<void> => Promise.reject(new Error('the sink is full'))
    await expect(millrace.run(endless(), { onRecord })).rejects.toThrow('the sink is full')
    await eventually(() => isLeft, { what: 'the URLs to be left' })
    await millrace.stop()
  })

  it('is stopped all the same where one is never done', async () => {
    const millrace = open()
    let onGiven = (): void => undefined
    const given = new Promise<void>((resolve) => {
      onGiven = resolve
    })
    const run = millrace.run(oneAndOpen(), {
      onRecord: () => {
        onGiven()
        return new Promise(() => undefined)
      },
    })
    const failed = expect(run).rejects.toMatchObject({ code: 'ABORTED', message: expect.stringContaining('onRecord') })
    await given
    await millrace.stop()
    await failed
  })
})

describe('a run that is stopped by who takes its records', () => {
  it('ends when the record in hand is done', async () => {
    const millrace = open()
    const done: unknown[] = []
    const report = await millrace.run(oneAndOpen(), {
      onRecord: async (record) => {
        await millrace.stop()
        done.push(record)
      },
    })
    expect(report.interrupted).toBe(true)
    expect([report.records, done.length]).toEqual([1, 1])
    await millrace.stop()
  })
})
