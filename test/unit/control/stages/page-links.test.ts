import { describe, expect, it } from 'vitest'
import { selectedLinks } from '../../../../src/control/stages/page-links.ts'
import { createSchemaStore } from '../../../../src/message/schema-store.ts'

const extractor = { file: 'shop.yaml', schema: createSchemaStore().current('UrlTask') }

describe('the links of a page whose selection failed', () => {
  it.each(['EXTRACT_TIMEOUT', 'EXTRACT_PAGE_BROKEN', 'BLOB_BROKEN', 'BLOB_MISSING', 'BLOB_STORE_UNKNOWN'] as const)(
    'are an error, by which the page is kept as a dead letter: %s',
    (code) => {
      const failure = { kind: 'failure', extractor: 'links-0', code, message: 'no' } as const
      expect(() => selectedLinks(extractor, failure)).toThrow(expect.objectContaining({ code, message: 'shop.yaml: no' }))
    },
  )
})
