import { describe, expect, it } from 'vitest'
import { parseRobots } from '../../../src/politeness/robots.ts'
import { RobotsMemory } from '../../../src/politeness/robots-memory.ts'

const robots = { rules: parseRobots(''), isPresent: true, fetchedAt: 0 }

describe('the memory of robots.txt files', () => {
  it('forgets what was used longest ago when there are too many', () => {
    const memory = new RobotsMemory({ maxOrigins: 2, maxBodyBytes: 1e9 })
    memory.set('a', robots, 1)
    memory.set('b', robots, 1)
    memory.get('a')
    memory.set('c', robots, 1)
    expect(['a', 'b', 'c'].map((origin) => memory.get(origin) !== undefined)).toEqual([true, false, true])
  })

  it('forgets as many as a large file needs, and keeps the newest whatever its size', () => {
    const memory = new RobotsMemory({ maxOrigins: 100, maxBodyBytes: 10_000 })
    for (const origin of ['a', 'b', 'c']) memory.set(origin, robots, 2_000)
    memory.set('large', robots, 5_000)
    expect(['a', 'b', 'c', 'large'].filter((origin) => memory.get(origin) !== undefined)).toEqual(['c', 'large'])
    memory.set('huge', robots, 1_000_000)
    expect([memory.size, memory.get('huge') !== undefined]).toEqual([1, true])
  })

  it('counts a file that is read again once', () => {
    const memory = new RobotsMemory({ maxOrigins: 100, maxBodyBytes: 10_000 })
    memory.set('a', robots, 1_000)
    for (let times = 0; times < 50; times += 1) memory.set('b', robots, 4_000)
    expect(memory.size).toBe(2)
  })
})
