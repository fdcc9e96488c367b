import { Command } from 'commander'
import { type CommandDefinition, crawlOption, timeForms } from '../command-definition.ts'
import type { ConsumeFlags } from '../consume-session.ts'

export const consumeCommand: CommandDefinition = (contextOf) =>
  new Command('consume')
    .description('messages of a topic, decoded, one JSON document a line; committed ones only')
    .argument('[what]', 'records, html, urls, outcomes, dead-letters, control, or a topic', 'records')
    .option('--from-beginning', 'from the first message (the default without --follow)')
    .option('--offset <p:n>', 'from offset n of partition p, that partition alone; urls is then the topic of that name')
    .option('--from <time>', 'from messages at or after a time')
    .option('--to <time>', 'up to messages before a time')
    .option('--max <n>', 'at most this many')
    .option('--follow', 'do not end at the end; begins there where nothing else is said')
    .option('--crawl <id>', 'of this crawl alone', crawlOption)
    .option('--domain <domain>', 'of this registrable domain or host alone')
    .option('--body', 'with the bodies of pages, unpacked, as base64; of dead letters too')
    .addHelpText('after', timeForms('that long ago'))
    .addHelpText(
      'after',
      '\nExample:\n  millrace consume records --follow | jq .value.data\n  millrace consume html --offset 3:17 --max 1 --body',
    )
    .action(async (what: string, flags: ConsumeFlags, running: Command) => {
      const { consumeMessages } = await import('../consume-session.ts')
      await consumeMessages(contextOf(running), what, flags)
    })
