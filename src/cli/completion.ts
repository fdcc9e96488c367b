import type { Command, Option } from 'commander'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

interface Completed {
  /** Names from the program to the command, without that of the program: '' or `topics plan`. */
  readonly path: string
  readonly commands: readonly { readonly name: string; readonly description: string }[]
  readonly options: readonly CompletedOption[]
}

interface CompletedOption {
  readonly long: string
  readonly description: string
  readonly takesValue: boolean
  readonly choices: readonly string[]
}

/** The script that makes a shell complete the commands and options of the program, out of their definitions. Pure. */
export function completionScript(program: Command, shell: Shell): string {
  const globals = optionsOf(program)
  const commands = walk(program, '').map((completed) => ({ ...completed, options: merged(completed.options, globals) }))
  switch (shell) {
    case 'bash':
      return bash(program.name(), commands)
    case 'zsh':
      return zsh(program.name(), commands)
    case 'fish':
      return fish(program.name(), commands)
  }
}

function walk(command: Command, path: string): Completed[] {
  const commands = command.commands.map((inner) => ({ name: inner.name(), description: inner.description() }))
  const inner = command.commands.flatMap((child) => walk(child, path === '' ? child.name() : `${path} ${child.name()}`))
  return [{ path, commands, options: optionsOf(command) }, ...inner]
}

function optionsOf(command: Command): CompletedOption[] {
  const help = { long: '--help', description: 'display help for command', takesValue: false, choices: [] }
  const own = command.options.flatMap((option: Option) =>
    option.long == null || option.hidden
      ? []
      : [
          {
            long: option.long,
            description: option.description,
            takesValue: option.required || option.optional,
            choices: option.argChoices ?? [],
          },
        ],
  )
  return [...own, help]
}

function merged(own: readonly CompletedOption[], globals: readonly CompletedOption[]): readonly CompletedOption[] {
  const names = new Set(own.map(({ long }) => long))
  return [...own, ...globals.filter(({ long }) => !names.has(long))]
}

/** Options whose next word is theirs, over all commands: so that a value is not taken for a command. */
function valued(commands: readonly Completed[]): string[] {
  return [...new Set(commands.flatMap(({ options }) => options.filter(({ takesValue }) => takesValue).map(({ long }) => long)))]
}

function choicesOf(commands: readonly Completed[]): [string, readonly string[]][] {
  return commands.flatMap(({ path, options }) =>
    options
      .filter(({ choices }) => choices.length > 0)
      .map(({ long, choices }): [string, readonly string[]] => [`${path} ${long}`, choices]),
  )
}

function bash(name: string, commands: readonly Completed[]): string {
  const cases = commands.map(({ path, commands: inner, options }) => {
    const words = [...inner.map((command) => command.name), ...options.map(({ long }) => long)]
    return `    ${quoted(path)}) words=${quoted(words.join(' '))}; subs=${quoted(inner.map((command) => command.name).join(' '))} ;;`
  })
  const choices = choicesOf(commands).map(
    ([key, values]) => `    ${quoted(key)}) COMPREPLY=($(compgen -W ${quoted(values.join(' '))} -- "$cur")); return ;;`,
  )
  return `# bash completion for ${name}
_${name}_words() {
  case "$1" in
${cases.join('\n')}
    *) words=''; subs='' ;;
  esac
}
_${name}() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" path='' words='' subs='' word i
  _${name}_words "$path"
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    case "$word" in
      ${valued(commands).join('|')}) ((i++)); continue ;;
      -*) continue ;;
    esac
    if [[ " $subs " == *" $word "* ]]; then
      path="\${path:+$path }$word"
      _${name}_words "$path"
    fi
  done
  case "$path $previous" in
${choices.join('\n')}
  esac
  case "$previous" in
    ${valued(commands).join('|')}) COMPREPLY=($(compgen -f -- "$cur")); return ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  if [[ \${#COMPREPLY[@]} -eq 0 && "$cur" != -* ]]; then COMPREPLY=($(compgen -f -- "$cur")); fi
}
complete -F _${name} ${name}
`
}

function zsh(name: string, commands: readonly Completed[]): string {
  const described = (entries: readonly { readonly name: string; readonly description: string }[]): string =>
    entries.map((entry) => quoted(`${entry.name.replaceAll(':', '\\:')}:${entry.description}`)).join(' ')
  const cases = commands.map(({ path, commands: inner, options }) => {
    const flags = options.map(({ long, description }) => ({ name: long, description }))
    return `    ${quoted(path)}) commands=(${described(inner)}); flags=(${described(flags)}); subs=(${inner.map((command) => command.name).join(' ')}) ;;`
  })
  const choices = choicesOf(commands).map(([key, values]) => `    ${quoted(key)}) compadd -- ${values.join(' ')}; return ;;`)
  return `#compdef ${name}
_${name}_words() {
  case "$1" in
${cases.join('\n')}
    *) commands=(); flags=(); subs=() ;;
  esac
}
_${name}() {
  local -a commands flags subs
  local spelled='' word previous="\${words[CURRENT-1]}" i
  _${name}_words "$spelled"
  for ((i = 2; i < CURRENT; i++)); do
    word="\${words[i]}"
    case "$word" in
      ${valued(commands).join('|')}) ((i++)); continue ;;
      -*) continue ;;
    esac
    if (( \${subs[(Ie)$word]} )); then
      spelled="\${spelled:+$spelled }$word"
      _${name}_words "$spelled"
    fi
  done
  case "$spelled $previous" in
${choices.join('\n')}
  esac
  case "$previous" in
    ${valued(commands).join('|')}) _files; return ;;
  esac
  if [[ "\${words[CURRENT]}" == -* ]]; then _describe 'option' flags; return; fi
  if (( \${#commands} )); then _describe 'command' commands; else _files; fi
}
if [[ "\${funcstack[1]}" == "_${name}" ]]; then _${name} "$@"; else compdef _${name} ${name}; fi
`
}

function fish(name: string, commands: readonly Completed[]): string {
  const all = new Set(commands.flatMap(({ commands: inner }) => inner.map((command) => command.name)))
  const lines = commands.flatMap(({ path, commands: inner, options }) => {
    const where = `-n ${fishQuoted(`__${name}_at ${path}`.trim())}`
    return [
      ...inner.map((command) => `complete -c ${name} -f ${where} -a ${fishQuoted(command.name)} -d ${fishQuoted(command.description)}`),
      ...options.map(({ long, description, takesValue, choices }) => {
        const value = choices.length > 0 ? ` -x -a ${fishQuoted(choices.join(' '))}` : takesValue ? ' -r' : ''
        return `complete -c ${name} ${where} -l ${long.slice(2)}${value} -d ${fishQuoted(description)}`
      }),
    ]
  })
  return `# fish completion for ${name}
function __${name}_at
  set -l spelled
  set -l skip 0
  for word in (commandline -opc)[2..-1]
    if test $skip -eq 1
      set skip 0
      continue
    end
    switch $word
      case ${valued(commands).join(' ')}
        set skip 1
      case '-*'
      case ${[...all].join(' ')}
        set -a spelled $word
    end
  end
  test "$spelled" = "$argv"
end
${lines.join('\n')}
`
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
