import { describe, expect, it } from 'vitest'
import { parseListing } from '../../../src/blobs/s3-listing.ts'

const entry = (key: string, time: string, size = '7'): string =>
  `<Contents><Key>${key}</Key><LastModified>${time}</LastModified><ETag>&quot;x&quot;</ETag><Size>${size}</Size></Contents>`

describe('a listing of S3', () => {
  it('gives keys, sizes, times, and where the next one begins', () => {
    const xml = `<?xml version="1.0"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b=</NextContinuationToken>${entry('p/1', '2026-01-02T03:04:05.000Z')}${entry('p/&lt;&#50;&#x33;', '2026-01-02T03:04:06Z', '0')}</ListBucketResult>`
    expect(parseListing(xml)).toEqual({
      objects: [
        { key: 'p/1', bytes: 7, touchedAt: Date.UTC(2026, 0, 2, 3, 4, 5) },
        { key: 'p/<23', bytes: 0, touchedAt: Date.UTC(2026, 0, 2, 3, 4, 6) },
      ],
      next: 'a&b=',
    })
  })

  it('leaves out what has no key or no time, and ends where nothing follows', () => {
    const xml = `<ListBucketResult>${entry('', '2026-01-02T03:04:05Z')}${entry('p/1', 'yesterday')}<IsTruncated>false</IsTruncated></ListBucketResult>`
    expect(parseListing(xml)).toEqual({ objects: [], next: '' })
  })
})
