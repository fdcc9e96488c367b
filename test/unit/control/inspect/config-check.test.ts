import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { configurationFindings } from '../../../../src/control/inspect/config-check.ts'

const faults = async (...sets: string[]): Promise<readonly string[]> => {
  const { config } = loadConfig({ sets, flags: {}, environment: {} })
  return (await configurationFindings(config)).faults.map(({ code, message }) => `${code}: ${message}`)
}

describe('a configuration', () => {
  it('is checked for all with which a process would not start, without asking anybody', async () => {
    expect(await faults('redis=localhost:6379', 'blobs.url=/var/lib/blobs', 'extractors=nothere.yaml')).toEqual([
      expect.stringMatching(/^CONFIG_INVALID: redis: localhost:6379 is no address of a Redis/),
      expect.stringMatching(/^CONFIG_INVALID: blobs.url is "\/var\/lib\/blobs"/),
      expect.stringMatching(/nothere\.yaml/),
    ])
    expect(await faults('redis=rediss://localhost:6379?ca=/no/such/file.pem')).toEqual([expect.stringContaining('/no/such/file.pem')])
  })

  it('is taken where the extractors of a group are on another machine, with a word about it', async () => {
    const { config } = loadConfig({ sets: ['extract.groups={slow: [nonexistent]}'], flags: {}, environment: {} })
    expect(await configurationFindings(config)).toEqual({
      faults: [],
      advice: [
        "extract.groups.slow names nonexistent, which no extractor file defines: `extract --group slow` and `run` can't start with it",
      ],
    })
  })

  it('is taken where every part can be used, whether or not it can be reached', async () => {
    expect(await faults('redis=redis://127.0.0.1:1', 'blobs.url=file:///no/such/folder')).toEqual([])
  })
})
