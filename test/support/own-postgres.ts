import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = '/usr/lib/postgresql'

/** Folder of initdb and pg_ctl: of the newest version of the distribution's package, or what the PATH has. */
function programs(): string | undefined {
  const versions = existsSync(ROOT) ? readdirSync(ROOT).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [...versions.map((version) => join(ROOT, version, 'bin')), ...(process.env.PATH ?? '').split(':')]
  return folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'pg_ctl')))
}

export const hasPostgres = programs() !== undefined

/** Reason for skipping, for the name of a suite. */
export const postgresNote = hasPostgres
  ? ''
  : ' (skipped: there is no PostgreSQL; apt-get install postgresql, or another way to get initdb)'

/** A PostgreSQL of one test, on a socket in a folder of its own. */
export class OwnPostgres {
  readonly #folder = mkdtempSync(join(tmpdir(), 'millrace-pg-'))
  readonly #bin = programs() ?? ''

  start(): void {
    chmodSync(this.#folder, 0o755)
    if (isRoot()) chownSync(this.#folder, idOf('-u'), idOf('-g'))
    this.#run('initdb', ['-D', this.#data, '-A', 'trust', '-N', '-U', 'postgres'])
    const settings = `-c listen_addresses='' -c unix_socket_directories=${this.#folder} -c fsync=off`
    this.#run('pg_ctl', ['-D', this.#data, '-w', '-l', join(this.#folder, 'log'), '-o', settings, 'start'])
  }

  /** Runs SQL; its rows as text, one a line, columns with `|`. Errors: what psql says, at the first statement that fails. */
  sql(text: string): string {
    const args = ['-h', this.#folder, '-U', 'postgres', '-qtA', '-v', 'ON_ERROR_STOP=1', '-f', '-']
    const result = spawnSync(join(this.#bin, 'psql'), args, { input: text, encoding: 'utf8' })
    if (result.status !== 0) throw new Error(`psql: ${result.stderr}`)
    return result.stdout.trim()
  }

  stop(): void {
    this.#run('pg_ctl', ['-D', this.#data, '-m', 'immediate', 'stop'])
    rmSync(this.#folder, { recursive: true, force: true })
  }

  get #data(): string {
    return join(this.#folder, 'data')
  }

  /** PostgreSQL will not run as root. */
  #run(program: string, args: readonly string[]): void {
    const command = join(this.#bin, program)
    const [file, all] = isRoot() ? ['runuser', ['-u', USER, '--', command, ...args]] : [command, args]
    const result = spawnSync(file as string, all as string[], { encoding: 'utf8', cwd: this.#folder, stdio: ['ignore', 'ignore', 'pipe'] })
    if (result.status !== 0) throw new Error(`${program}: ${result.stderr ?? String(result.error)}`)
  }
}

/** The user of the distribution's package; it is there where the package is. */
const USER = 'postgres'

function isRoot(): boolean {
  return process.getuid?.() === 0
}

function idOf(flag: '-u' | '-g'): number {
  return Number(spawnSync('id', [flag, USER], { encoding: 'utf8' }).stdout)
}
