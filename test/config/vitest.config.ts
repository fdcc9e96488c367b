import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { TIME_LIMIT_MISSED } from '../support/in-time.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

export default defineConfig(({ mode }) => ({
  root,
  test: {
    include: ['test/**/*.test.ts'],
    // The long fault runs have a command of their own; a short one is in test/e2e.
    exclude: mode === 'fault' ? [] : ['test/fault/**', 'test/bench/**'],
    globalSetup: ['test/support/global-setup.ts'],
    reporters: ['default', './test/config/summary-reporter.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // For what hangs: a busy machine may take several times what a quiet one does. The waits within a test say sooner what they wait for.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // A machine that others use too may miss a time limit. Whatever else goes wrong has gone wrong: nothing lost is tried again.
    retry: { count: 1, condition: TIME_LIMIT_MISSED },
    passWithNoTests: false,
  },
}))
