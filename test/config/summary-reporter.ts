import type { Reporter, TestModule } from 'vitest/node'

/** Ends the output with one plain line, so that anybody (and any script) can read how it went. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const again: string[] = []
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 }
    for (const module of modules) {
      if (module.errors().length > 0) counts.failed += 1
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (test.diagnostic()?.flaky === true) again.push(`${module.relativeModuleId}: ${test.fullName}`)
        if (state === 'passed' || state === 'failed' || state === 'skipped') counts[state] += 1
      }
    }
    const inTime = again.map((name) => `in its time at the second attempt only: ${name}\n`).join('')
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''
    // After the other reporters have written theirs.
    process.once('exit', () => process.stdout.write(`\n${inTime}${counts.passed} passed, ${counts.failed} failed${skipped}\n`))
  }
}
