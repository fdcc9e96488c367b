import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { isNewDeployment } from '../../../../src/control/runtime/new-deployment.ts'

const folders: string[] = []
function folderWith(...names: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-new-'))
  folders.push(folder)
  for (const name of names) mkdirSync(join(folder, name))
  return folder
}
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

describe('a deployment in a data folder', () => {
  it('is new where neither broker nor state is there', () => {
    expect(isNewDeployment(folderWith())).toBe(true)
    expect(isNewDeployment(folderWith('other'))).toBe(true)
    expect(isNewDeployment(join(folderWith(), 'not-there'))).toBe(true)
  })

  it('is not new where only its state was taken away, or its broker', () => {
    expect(isNewDeployment(folderWith('kafka'))).toBe(false)
    expect(isNewDeployment(folderWith('state'))).toBe(false)
  })
})
