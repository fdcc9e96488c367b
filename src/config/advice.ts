import { isDisguised } from '../kernel/product-token.ts'
import type { Config, OptionPath } from './options.ts'
import { formatDuration } from './units.ts'

/** A URL, a mail address, or at least a domain. */
const CONTACT = /https?:\/\/\S|\S@\S+\.\S|www\.\S/i

const RETENTIONS = [
  ['topics.retention.html', 'pages'],
  ['topics.retention.urls', 'finished tasks'],
  ['topics.retention.records', 'records'],
  ['topics.retention.outcomes', 'outcomes'],
  ['topics.retention.deadLetters', 'dead letters'],
] as const satisfies readonly (readonly [OptionPath, string])[]
/** A stage that is restarted, or a sink that rests for a while, is away for as long. */
const SHORT_RETENTION_MS = 3_600_000
const PARTITIONS = (['urls', 'delay', 'html', 'outcomes', 'records', 'deadLetters'] as const).map(
  (name) => `topics.partitions.${name}` as const,
)
const MANY_PARTITIONS = 1_000

/** What is allowed and yet deserves a second look. Shape: one sentence each; empty when there is nothing to say. */
export function configAdvice(config: Config): string[] {
  const advice: string[] = []
  if (config['fetch.userAgent'] === undefined) {
    advice.push(
      'fetch.userAgent is not set: sites can not tell who asks, nor write to you; give one with a contact, like examplebot/1.0 (+https://example.com/bot)',
    )
  } else if (!CONTACT.test(config['fetch.userAgent'])) {
    const name = JSON.stringify(config['fetch.userAgent'])
    advice.push(
      `fetch.userAgent ${name} names no contact: sites can not write to you; add a URL or an address, like (+https://example.com/bot)`,
    )
  }
  if (isDisguised(config['fetch.userAgent'] ?? '')) {
    const name = JSON.stringify(config['fetch.userAgent'])
    advice.push(
      `fetch.userAgent ${name} has no name but Mozilla: what a robots.txt says to your bot is passed over; put its name first, or behind "compatible;"`,
    )
  }
  if (config['fetch.robots'] === 'ignore') advice.push('fetch.robots is ignore: robots.txt of every site is passed over')
  if (config.brokers.length > 0 && config.redis === undefined) {
    advice.push('brokers are set and redis is not: pace, dedup and limits are kept on this machine only')
  }
  if (config['kafka.sasl.mechanism'] === 'plain' && !config['kafka.ssl'])
    advice.push('kafka.sasl.mechanism is plain and kafka.ssl is false: the password goes over the wire as it is')
  for (const [path, what] of RETENTIONS) {
    const ms = config[path] as number
    if (ms < SHORT_RETENTION_MS)
      advice.push(`${path} is ${formatDuration(ms)}: ${what} are deleted so soon that whoever reads them may come too late`)
  }
  for (const path of PARTITIONS) {
    const count = config[path] as number | undefined
    if (count !== undefined && count > MANY_PARTITIONS)
      advice.push(`${path} is ${count}: a broker bears some thousands of partitions over all topics, and no count can be lowered later`)
  }
  if (config['fetch.allowAddresses'].length > 0)
    advice.push(`fetch.allowAddresses lets private addresses be fetched: ${config['fetch.allowAddresses'].join(', ')}`)
  return advice
}
