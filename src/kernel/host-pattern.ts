import { domainToASCII } from 'node:url'

/**
 * A pattern of hosts as hosts of URLs are written: lower case, in ASCII, without a dot at the end; `*` stands for any characters.
 * Shape: undefined where no host could match it: one with a scheme, a port or a path, or with characters that no host has.
 */
export function hostPattern(text: string): string | undefined {
  const plain = text.toLowerCase().replace(/\.$/, '')
  if (/^[\w.*-]+$/.test(plain) || /^\[[\da-f:.*]+\]$/.test(plain)) return plain
  return /[\s/\\:?#@,]/.test(plain) ? undefined : domainToASCII(plain) || undefined
}
