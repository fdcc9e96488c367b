import type { Config } from './options.ts'

/** A URL, a mail address, or at least a domain. */
const CONTACT = /https?:\/\/\S|\S@\S+\.\S|www\.\S/i

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
  if (config['fetch.robots'] === 'ignore') advice.push('fetch.robots is ignore: robots.txt of every site is passed over')
  if (config.brokers.length > 0 && config.redis === undefined) {
    advice.push('brokers are set and redis is not: pace, dedup and limits are kept on this machine only')
  }
  if (config['fetch.allowAddresses'].length > 0)
    advice.push(`fetch.allowAddresses lets private addresses be fetched: ${config['fetch.allowAddresses'].join(', ')}`)
  return advice
}
