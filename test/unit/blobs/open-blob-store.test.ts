import { describe, expect, it } from 'vitest'
import { openBlobStore } from '../../../src/blobs/open-blob-store.ts'
import { systemClock } from '../../../src/kernel/clock.ts'

const KEYS = { accessKeyId: 'a', secretAccessKey: 'b' }

describe('blobs.url', () => {
  it('names a folder, or a bucket and what stands before each key', () => {
    expect(openBlobStore({ url: 'file:///var/lib/my%20blobs' }, systemClock).location).toBe('/var/lib/my blobs')
    expect(openBlobStore({ url: 's3://Bucket/a/b/', ...KEYS }, systemClock).location).toBe('s3://Bucket/a/b/')
    expect(openBlobStore({ url: 's3://bucket', ...KEYS }, systemClock).location).toBe('s3://bucket/')
  })

  it.each([
    ['blobs', 'expected file:///folder or s3://bucket/prefix'],
    ['http://x/', 'expected file:///folder or s3://bucket/prefix'],
    ['s3:///prefix', 'expected file:///folder or s3://bucket/prefix'],
    ['file://blobs/x', 'three slashes'],
    ['file:///100%', 'expected file:///folder or s3://bucket/prefix'],
    ['file:///a%2Fb', 'expected file:///folder or s3://bucket/prefix'],
    ['s3://bucket/100%', 'write %25 for a percent sign'],
  ])('is refused as %s', (url, text) => {
    expect(() => openBlobStore({ url, ...KEYS }, systemClock)).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringContaining(text) }),
    )
  })

  it('needs both keys for S3, and an endpoint that is one', () => {
    expect(() => openBlobStore({ url: 's3://b', secretAccessKey: 'b' }, systemClock)).toThrow('blobs.accessKeyId')
    expect(() => openBlobStore({ url: 's3://b', accessKeyId: 'a' }, systemClock)).toThrow('AWS_SECRET_ACCESS_KEY')
    expect(() => openBlobStore({ url: 's3://b', ...KEYS, endpoint: 'localhost:8333' }, systemClock)).toThrow('blobs.endpoint')
  })
})
