import type { Config } from '../../config/options.ts'
import { type ForwardProxy, parseProxyUrl } from '../../fetch/proxy-url.ts'
import { compileHostGlob } from '../../url/glob.ts'
import { bareHost } from '../../url/registrable-domain.ts'

/** Proxies by URL: those of the first rule that matches the host, where it names any; else `fetch.proxies`. Errors: CONFIG_INVALID. */
export function proxyRules(config: Config): (url: URL) => readonly ForwardProxy[] {
  const everywhere = config['fetch.proxies'].map(parseProxyUrl)
  const rules = config['politeness.rules'].map(({ match, proxies }) => ({
    matches: compileHostGlob(match),
    proxies: proxies?.map(parseProxyUrl),
  }))
  return (url) => rules.find(({ matches }) => matches(bareHost(url.hostname)))?.proxies ?? everywhere
}
