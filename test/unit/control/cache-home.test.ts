import { userInfo } from 'node:os'
import { expect, it } from 'vitest'
import { cacheHome } from '../../../src/control/runtime.ts'

const own = `${userInfo().homedir}/.cache`

it.each([
  [{ XDG_CACHE_HOME: '/cache', HOME: '/home/me' }, '/cache'],
  [{ XDG_CACHE_HOME: '', HOME: '/home/me' }, '/home/me/.cache'],
  [{ XDG_CACHE_HOME: 'relative', HOME: '/home/me' }, '/home/me/.cache'],
  [{ HOME: '' }, own],
  [{}, own],
])('the folder of caches is never the working folder: %o', (environment, folder) => {
  expect(cacheHome(environment)).toBe(folder)
})
