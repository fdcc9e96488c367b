import { randomBytes } from 'node:crypto'

/** Addresses of the broker and of Redis for this test run; the global setup starts them and sets these variables. */
export function brokers(): string[] {
  return required('MILLRACE_TEST_BROKERS').split(',')
}

export function redisUrl(): string {
  return required('MILLRACE_TEST_REDIS')
}

/** What makes the command line keep its state in that store, as `path=value`. */
export function storeSets(store: 'lmdb' | 'redis'): string[] {
  return store === 'redis' ? [`redis=${redisUrl()}`] : []
}

/** A name that no other test uses: topics, groups and prefixes are never shared. */
export function uniqueName(label: string): string {
  return `${label}-${randomBytes(5).toString('hex')}`
}

function required(name: string): string {
  const value = process.env[name]
  if (value === undefined || value === '')
    throw new Error(`${name} is not set: run the tests with \`npm test\`, which starts what they need`)
  return value
}
