import { describe, expect, it } from 'vitest'
import { srcsetUrls } from '../../../../src/extract/values/srcset.ts'
import { growth } from '../../../support/growth.ts'

describe('srcset', () => {
  it('C104: keeps commas within URLs', () => {
    expect(srcsetUrls('/w_300,h_200/a.jpg 300w, /b.jpg, data:image/png;base64,AA== 2x')).toEqual([
      '/w_300,h_200/a.jpg',
      '/b.jpg',
      'data:image/png;base64,AA==',
    ])
  })

  it('C104: takes commas without white space as part of one URL, but for those at its end', () => {
    expect(srcsetUrls('a,b,,c,')).toEqual(['a,b,,c'])
    expect(srcsetUrls(' , ,a.jpg 1x , b.jpg')).toEqual(['a.jpg', 'b.jpg'])
    expect(srcsetUrls('')).toEqual([])
    expect(srcsetUrls('a (1,2), b')).toEqual(['a', 'b'])
  })

  it.each([',', 'a ', ', ', 'a, ', 'a(', ',a'])('costs no more than its length: %j again and again', (text) => {
    expect(growth((count) => srcsetUrls(`a${text.repeat(count)}a`), 5_000)).toBeLessThan(9)
  })
})
