import { describe, expect, it } from 'vitest'
import { ofSeedsAlone } from '../../../src/cli/produce-session.ts'
import type { TaskTemplate } from '../../../src/control/crawls/produce.ts'

const template: TaskTemplate = {
  crawlId: 'c',
  lane: 'normal',
  maxDepth: 1,
  method: 'GET',
  headers: { accept: 'x' },
  body: null,
  meta: {},
  notBefore: null,
  expiresAt: 1,
  ifChanged: true,
}

describe('options that links do not take over', () => {
  it('are named where links are followed', () => {
    expect(ofSeedsAlone(template)).toEqual(['--header', '--if-changed', '--expires'])
    expect(ofSeedsAlone({ ...template, headers: {}, expiresAt: null })).toEqual(['--if-changed'])
    expect(ofSeedsAlone({ ...template, headers: {}, expiresAt: null, ifChanged: false })).toEqual([])
  })

  it('are nothing to say of where none are', () => {
    expect(ofSeedsAlone({ ...template, maxDepth: 0 })).toEqual([])
    expect(ofSeedsAlone({ ...template, crawlId: null })).toEqual([])
  })
})
