import { createRequire } from 'node:module'
import { sep } from 'node:path'
import { type KafkajsModules, kafkajsModules } from '../../src/kafka/patches/kafkajs-modules.ts'

/**
 * Runs with an own, unpatched copy of kafkajs: Node's cache of its modules is emptied before and put back afterwards. What `use`
 * returns keeps working on that copy; modules must be loaded inside `use`.
 */
export function withFreshKafkajs<T>(use: (modules: KafkajsModules) => T): T {
  const { cache } = createRequire(import.meta.url)
  const kept = new Map(Object.entries(cache).filter(([path]) => path.includes(`${sep}kafkajs${sep}`)))
  for (const path of kept.keys()) delete cache[path]
  try {
    return use(kafkajsModules())
  } finally {
    for (const path of Object.keys(cache)) if (path.includes(`${sep}kafkajs${sep}`)) delete cache[path]
    for (const [path, module] of kept) cache[path] = module
  }
}
