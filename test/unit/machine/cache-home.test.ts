import { userInfo } from 'node:os'
import { expect, it } from 'vitest'
import { cacheHome } from '../../../src/machine/cache-home.ts'

const own = `${userInfo().homedir}/.cache`

it.each([
  [{ XDG_CACHE_HOME: '/cache', HOME: '/home/me' }, '/cache'],
  [{ XDG_CACHE_HOME: '', HOME: '/home/me' }, '/home/me/.cache'],
  [{ XDG_CACHE_HOME: 'relative', HOME: '/home/me' }, '/home/me/.cache'],
  [{ HOME: '' }, own],
  [{}, own],
])('the folder of caches is never the working folder: %o', (environment, folder) => {
  expect(cacheHome(environment, '/data')).toBe(folder)
})

it('a user whom the system does not know has it in the data folder, and so has one without a home', () => {
  const unknown = (): string => {
    throw new Error('uv_os_get_passwd returned ENOENT (no such file or directory)')
  }
  expect(cacheHome({}, '/data', unknown)).toBe('/data/.cache')
  expect(cacheHome({}, '/data', () => '')).toBe('/data/.cache')
})
