import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { announceExtractors } from '../../../../src/control/extractors/announce-extractors.ts'
import { liveVersions } from '../../../../src/control/extractors/announced-versions.ts'
import { announce, announceSchema } from '../../../../src/control/runtime/announce.ts'
import { loadDefinition } from '../../../../src/extract/load-extractors.ts'
import { parseSchema } from '../../../../src/message/avro.ts'
import { subject } from '../../../../src/message/command.ts'
import { decodeTask } from '../../../../src/message/decode-task.ts'
import { singleObjectFrame } from '../../../../src/message/framing.ts'
import { Deployment } from '../../../support/deployment.ts'
import { BOOK_1 } from '../../../support/stored-shop.ts'

let deployment: Deployment
beforeEach(async () => {
  deployment = await Deployment.open()
})
afterEach(() => deployment.close())

describe('the schema of a record', () => {
  it('is announced by a release that gives the same definition another one than the release before', async () => {
    await deployment.read(async (runtime) => {
      const book = loadDefinition('book.yaml', BOOK_1)
      const { definitionSha256, schema } = book
      const before = { definitionSha256, fingerprint: '0123456789abcdef', required: [] }
      await announce(runtime, { kind: 'announce', subject: subject.extractor('book', 1), payload: before })
      await announceExtractors(runtime, [book])
      const control = await runtime.control()
      expect(control.get(subject.schema(schema.fingerprint))).toBeDefined()
      expect(liveVersions(control, 'book').map(({ fingerprint }) => fingerprint)).toEqual([schema.fingerprint])
    })
  })
})

describe('the schemas of messages', () => {
  it('are announced once, however many write with them', async () => {
    const offsets: (bigint | undefined)[] = []
    for (let time = 0; time < 2; time += 1)
      await deployment.read(async (runtime) => {
        await runtime.publisher()
        const control = await runtime.control()
        offsets.push(control.offsetOf(subject.schema(runtime.schemaStore.current('UrlTask').fingerprint)))
      })
    expect(offsets).toEqual([expect.any(BigInt), offsets[0]])
  })

  it('of a newer release are known by the time that its messages are read', async () => {
    await deployment.read(async (older) => {
      const fields = JSON.parse(older.schemaStore.current('UrlTask').text)
      fields.fields.push({ name: 'patience', type: 'int', default: 0 })
      const schema = parseSchema(JSON.stringify(fields))
      const value = singleObjectFrame(schema.fingerprint, schema.encode({ url: 'https://shop.example/', patience: 7 }))
      await deployment.read(async (newer) => announceSchema(newer, schema))
      await older.codec.ensureSchemas([value])
      expect(decodeTask(older.codec, value).url).toBe('https://shop.example/')
    })
  })
})
