/** As it is typed in a shell: in single quotes where the shell would read more into it. Pure. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/** The flag with each of the values, behind a command: ` --extractor book.yaml`. Empty where there are none. */
export function repeatedFlag(flag: string, values: readonly string[]): string {
  return values.map((value) => ` ${flag} ${shellWord(value)}`).join('')
}
