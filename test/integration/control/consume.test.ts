import { afterEach, describe, expect, it, vi } from 'vitest'
import { consume } from '../../../src/control/consume.ts'
import { Deployment } from '../../support/deployment.ts'
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
})
