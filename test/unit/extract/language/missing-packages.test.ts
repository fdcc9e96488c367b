import { describe, expect, it, vi } from 'vitest'
import { readDefinition } from '../../../../src/extract/language/read-definition.ts'

/** As on a machine where nobody has installed what needs not be there. */
vi.mock('node:module', async (original) => {
  const real = await original<typeof import('node:module')>()
  const createRequire: typeof real.createRequire = (from) => {
    const require = real.createRequire(from)
    const resolve = (name: string): string => {
      if (['@mozilla/readability', 'linkedom', 'turndown'].includes(name)) throw new Error(`Cannot find module '${name}'`)
      return require.resolve(name)
    }
    return Object.assign((name: string) => require(name) as unknown, require, { resolve }) as unknown as NodeJS.Require
  }
  return { ...real, createRequire, default: { ...real, createRequire } }
})

const problemsOf = (field: string): string[] =>
  readDefinition(`name: t\nversion: 1\nfields:\n  x: ${field}\n`).problems.map(
    ({ line, column, message }) => `${line}:${column} ${message}`,
  )

describe('an extractor that needs a package which is not installed', () => {
  it.each([
    [
      '{ article: text }',
      'needs the packages @mozilla/readability and linkedom, which are not installed: npm install @mozilla/readability linkedom',
    ],
    ['{ select: main, type: markdown }', 'needs the package turndown, which is not installed: npm install turndown'],
  ])('is refused where it asks for it, with the command to type: %s', (field, problem) => {
    const problems = problemsOf(field)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(/^4:\d+ /)
    expect(problems[0]).toContain(problem)
  })

  it('is told of both where it asks for both', () => {
    expect(problemsOf('{ article: content, type: markdown }')).toHaveLength(2)
  })

  it('works as ever where it asks for nothing of it', () => {
    expect(problemsOf('{ select: main }')).toEqual([])
  })
})
