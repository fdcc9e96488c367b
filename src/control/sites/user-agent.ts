import type { Config } from '../../config/options.ts'

/** What requests call themselves. Apart from the stages: who only asks for the robots rules that apply needs nothing that fetches. */
export function userAgentOf(config: Config, version: string): string {
  return config['fetch.userAgent'] ?? `millrace/${version}`
}
