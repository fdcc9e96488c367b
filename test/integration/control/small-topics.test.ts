import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fixedVersions } from '../../../src/control/extractors/active-versions.ts'
import { ExtractStage } from '../../../src/control/stages/extract-stage.ts'
import { loadDefinition } from '../../../src/extract/load-extractors.ts'
import { headerText } from '../../../src/kafka/message.ts'
import { HEADER } from '../../../src/message/header-names.ts'
import { Deployment } from '../../support/deployment.ts'
import { setTopicConfigs } from '../../support/kafka.ts'
import { BOOK_1, bookHtml, caughtUp, type ShopPage, storePages } from '../../support/stored-shop.ts'

let deployment: Deployment
beforeEach(async () => {
  deployment = await Deployment.open({ set: ['topics.partitions.urls=1'] })
})
afterEach(() => deployment.close())

const page = (index: number, html: string): ShopPage => ({ index, html })
const withoutKey = (length: number): string => `<html><body><h1>${'N'.repeat(length)}</h1></body></html>`

describe('an extract stage whose topics take less than is configured, since somebody made them by hand', () => {
  it('puts what does not fit into dead letters, cut where these do not fit either, and goes on', async () => {
    await deployment.read(async (runtime) => {
      const { topics, admin, groups } = runtime
      await setTopicConfigs(admin, topics.records, { 'max.message.bytes': '20000' })
      await setTopicConfigs(admin, topics.deadLetters, { 'max.message.bytes': '40000' })
      const large = bookHtml(1).replace('Book 1', 'B'.repeat(30_000))
      // Small ones before and behind, in transactions of many messages.
      await storePages(
        runtime,
        [0, 2, 3].map((index) => page(index, bookHtml(index))),
      )
      await storePages(runtime, [page(1, large), page(4, withoutKey(400_000)), page(9, withoutKey(50_000))])
      await storePages(
        runtime,
        [5, 6, 7, 8].map((index) => page(index, bookHtml(index).replace('Book', 'B'.repeat(9_000)))),
      )
      const extractors = [loadDefinition('book.yaml', BOOK_1)]
      const stage = new ExtractStage(runtime, {
        versions: fixedVersions(extractors),
        own: (working) => working,
        groupId: groups.extract(),
        drainTimeoutMs: 10_000,
      })
      await stage.start()
      await caughtUp(deployment)
      await stage.stop({ mode: 'drain', timeoutMs: 10_000 })
    })
    const keys = (await deployment.records()).map(({ value }) => value.entityKey)
    expect(keys.sort()).toEqual(['B0', 'B2', 'B3', 'B5', 'B6', 'B7', 'B8'])
    const letters = await deployment.deadLetters()
    const told = letters.map(({ headers }) => [HEADER.errorCode, HEADER.truncated].map((name) => headerText(headers, name)))
    expect(told.sort()).toEqual([
      ['EXTRACT_FIELD_MISSING', 'value'],
      ['EXTRACT_FIELD_MISSING', 'value'],
      ['EXTRACT_RECORD_TOO_LARGE', undefined],
    ])
  })
})
