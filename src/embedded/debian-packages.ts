import { existsSync } from 'node:fs'
import type { Observer } from '../kernel/observe.ts'
import { runCommand, tail } from './run-command.ts'

/** True where this process may install packages of the distribution: Debian or a child of it, as root. */
export function canInstallPackages(): boolean {
  return process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/etc/debian_version')
}

/** How it ended; the reason is for people. */
export type InstallResult = { readonly kind: 'installed' } | { readonly kind: 'failed'; readonly reason: string }

const INSTALL = ['-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=300', 'install']

/** Installs packages, after an event that says so. The lists are read anew only when the first try finds no such package. */
export async function installPackages(packages: readonly string[], observer: Observer, signal?: AbortSignal): Promise<InstallResult> {
  observer.emit('DependencyInstalling', { what: packages.join(' '), by: 'apt-get install' })
  const limits = { timeoutMs: 600_000, ...(signal === undefined ? {} : { signal }) }
  // Through env(1): apt-get must not ask questions, and the environment of this process is read elsewhere only.
  const install = (): ReturnType<typeof runCommand> =>
    runCommand('env', ['DEBIAN_FRONTEND=noninteractive', 'apt-get', ...INSTALL, ...packages], limits)
  const first = await install()
  if (first.kind === 'done') return { kind: 'installed' }
  const update = await runCommand('apt-get', ['update'], limits)
  const second = update.kind === 'done' ? await install() : update
  if (second.kind === 'done') return { kind: 'installed' }
  return {
    kind: 'failed',
    reason: second.kind === 'missing' ? 'there is no apt-get' : `apt-get failed (${second.how}): ${tail(second.output, 4)}`,
  }
}
