import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { shadowedRules } from '../../../../src/control/sites/shadowed-rules.ts'

const said = (...patterns: string[]) => {
  const rules = JSON.stringify(patterns.map((match) => ({ match })))
  return shadowedRules(loadConfig({ sets: [`politeness.rules=${rules}`], flags: {}, environment: {} }).config)
}

describe('advice on rules that never count', () => {
  it('names the rule that stands before a narrower one', () => {
    expect(said('*.com', 'b.example', 'a.com')).toEqual([
      'politeness.rules: rule 3 (a.com) never counts: rule 1 (*.com) matches all its hosts, and the first that matches counts; put a.com before it',
    ])
  })

  it('tells two rules of one pattern', () => {
    expect(said('A.com', 'a.com')).toEqual([expect.stringMatching(/^politeness\.rules: rule 2 .*; make one of the two$/)])
  })

  it.each([
    [['a.com', '*.com']],
    [['*.a.com', 'b.a.com.example']],
    // The one has hosts that the other has not.
    [['*.a.*', 'a.*']],
  ])('has nothing to say of %j', (patterns) => {
    expect(said(...patterns)).toEqual([])
  })
})
