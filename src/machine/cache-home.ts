import { userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'

/**
 * The user's folder for what can be had again. A variable that is empty or no absolute path counts as not set: 43 MB of jars would lie in
 * the working folder. A user without a home, such as the number that a container was given, has it in the data folder: in a temporary
 * folder others could lay jars of theirs. Source: XDG Base Directory Specification.
 */
export function cacheHome(
  environment: Readonly<Record<string, string | undefined>>,
  dataDir: string,
  ownHome: () => string = () => userInfo().homedir,
): string {
  const { XDG_CACHE_HOME: cache = '', HOME: home = '' } = environment
  if (isAbsolute(cache)) return cache
  return join(isAbsolute(home) ? home : (homeOf(ownHome) ?? dataDir), '.cache')
}

/** Shape: undefined where the system knows no user of this number, or no home of theirs. */
function homeOf(ownHome: () => string): string | undefined {
  try {
    const home = ownHome()
    return isAbsolute(home) ? home : undefined
  } catch {
    return undefined
  }
}
