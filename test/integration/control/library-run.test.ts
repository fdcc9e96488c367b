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

describe('a run whose records can not be taken', () => {
  it('fails with the reason, and its URLs are read no further', { timeout: 60_000 }, async () => {
    const millrace = new Millrace({
      brokers: brokers(),
      data: deployment.dataDir,
      extractors: [deployment.file('page.yaml', PAGE)],
      'topics.prefix': deployment.prefix,
      'fetch.allowAddresses': '127.0.0.0/8',
      'fetch.resolve': '*.example=127.0.0.1',
    })
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
})
