import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { consume } from '../../../src/control/consume.ts'
import type { Runtime } from '../../../src/control/runtime/runtime.ts'
import { readLog } from '../../../src/kafka/log-reader.ts'
import { bodyRefOf } from '../../../src/message/body-ref.ts'
import { Deployment } from '../../support/deployment.ts'
import { testPage } from '../../support/extraction.ts'
import { range, storePages } from '../../support/stored-shop.ts'

describe('pages as consume shows them', () => {
  let deployment: Deployment
  afterEach(() => deployment.close())

  it('are decoded once, with the name of their schema', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      await storePages(runtime, range(3))
      const decodings = [vi.spyOn(runtime.codec, 'decode'), vi.spyOn(runtime.codec, 'decodeAny')]
      const schemas: (string | undefined)[] = []
      for await (const { schema } of consume(runtime, { what: 'html', start: { kind: 'beginning' }, follow: false, body: false }))
        schemas.push(schema)
      expect(schemas).toEqual(['io.millrace.v1.Page', 'io.millrace.v1.Page', 'io.millrace.v1.Page'])
      expect(decodings.map(({ mock }) => mock.calls.length)).toEqual([3, 0])
    })
  })

  it('have their bodies among dead letters where these are asked for alone', async () => {
    deployment = await Deployment.open()
    await deployment.read(async (runtime) => {
      await storePages(runtime, range(1))
      const read = async (what: string, body: boolean) => {
        const found = []
        for await (const message of consume(runtime, { what, start: { kind: 'beginning' }, follow: false, body })) found.push(message)
        return found
      }
      const value = await pageBytes(runtime)
      await (await runtime.producer()).send([{ topic: runtime.topics.deadLetters, partition: 0, key: null, value }])
      const [without] = await read('dead-letters', false)
      expect(without).toMatchObject({ schema: 'io.millrace.v1.Page', value: { status: 200 } })
      expect(without?.value).not.toHaveProperty('body')
      const [page] = await read('html', true)
      expect((await read('dead-letters', true))[0]?.value).toEqual(page?.value)
    })
  })
})

describe('pages whose bodies lie in a blob store', () => {
  it('are not shown as damaged where the store is refused: that ends the reading', async () => {
    const file = fileURLToPath(import.meta.url)
    const deployment = await Deployment.open({ set: [`blobs.url=${pathToFileURL(file).href}`] })
    try {
      await deployment.read(async (runtime) => {
        const { codec, topics } = runtime
        const page = testPage('<h1>large</h1>')
        await codec.prepare(topics.html, 'Page')
        const value = codec.encode('Page', { ...page, body: Buffer.alloc(0), bodyRef: bodyRefOf(page) }, topics.html)
        await (await runtime.producer()).send([{ topic: topics.html, partition: 0, key: null, value }])
        const read = (body: boolean) => consume(runtime, { what: 'html', start: { kind: 'beginning' }, follow: false, body }).next()
        expect((await read(false)).done).toBe(false)
        await expect(read(true)).rejects.toMatchObject({ code: 'BLOBS_REFUSED' })
      })
    } finally {
      await deployment.close()
    }
  })
})

async function pageBytes(runtime: Runtime): Promise<Buffer> {
  const from = new Map([[runtime.topics.html, 'earliest' as const]])
  for await (const event of readLog({ client: runtime.client, clock: runtime.clock, observer: runtime.observer, from, follow: false }))
    if (event.kind === 'batch' && event.messages[0]?.value) return event.messages[0].value
  throw new Error('html holds no page')
}

describe('urls from an offset', () => {
  it('is the topic of that name, since an offset is of one', async () => {
    const deployment = await Deployment.open()
    try {
      await deployment.read(async (runtime) => {
        const value = Buffer.from('{"url":"https://books.example/"}')
        await (await runtime.producer()).send([{ topic: runtime.topics.urls.normal, partition: 1, key: null, value }])
        const start = { kind: 'offset', partition: 1, offset: 0n } as const
        const topics: string[] = []
        for await (const { topic } of consume(runtime, { what: 'urls', start, follow: false, body: false })) topics.push(topic)
        expect(topics).toEqual([runtime.topics.urls.normal])
        const behind = consume(runtime, { what: 'urls', start: { ...start, offset: 1n }, follow: false, body: false })
        expect((await behind.next()).done).toBe(true)
      })
    } finally {
      await deployment.close()
    }
  })
})
