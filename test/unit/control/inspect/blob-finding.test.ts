import { describe, expect, it } from 'vitest'
import { blobFinding } from '../../../../src/control/inspect/doctor.ts'
import { MillraceError } from '../../../../src/kernel/errors.ts'

const refused = new MillraceError('BLOBS_REFUSED', 'the blob store /blobs can not be written to')
const store = { location: '/blobs', check: async () => true, prepare: async () => undefined }

describe('what doctor says of the blob store', () => {
  it.each([
    ['can be written to', store, 'ok', /answers/],
    [
      'is read-only',
      { ...store, prepare: () => Promise.reject(refused) },
      'warn',
      /can be read, and fetch can not work here: .* written to/,
    ],
    ['is not there, and is not made', { ...store, check: async () => false, prepare: () => Promise.reject(refused) }, 'warn', /not there/],
  ])('where it %s', async (_, blobs, level, text) => {
    expect(await blobFinding(blobs)).toMatchObject({ level, text: expect.stringMatching(text) })
  })
})
