import { percentDecoded } from '../kernel/percent-decoded.ts'

/** A schema registry as an operator names it. */
export interface RegistryAddress {
  /** Without user and password. */
  readonly url: string
  /** Of basic authentication; undefined where none is named. */
  readonly credentials: { readonly user: string; readonly password: string } | undefined
}

/** Shape: what is wrong as text for people, without the URL, which may hold a password. */
export function parseRegistryUrl(text: string): RegistryAddress | string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) return 'registry.url is no http or https URL, such as http://localhost:8081'
  const [user, password] = [percentDecoded(url.username), percentDecoded(url.password)]
  if (user === undefined || password === undefined)
    return 'registry.url has a user or password with a % that begins no escape (write %25 for a percent sign)'
  const credentials = url.username === '' ? undefined : { user, password }
  url.username = ''
  url.password = ''
  return { url: url.href, credentials }
}
