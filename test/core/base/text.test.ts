/** Texts whose reader may take them for another. */
import { describe, expect, test } from 'vitest';
import { problemOfUri } from '../../../src/core/base/text.ts';

const STEPS = 'must have no "." or ".." steps';
const CONTROLS = 'must not have control characters, nor white space at its ends';
const FILE = 'must begin with file:/// for a file of this machine';

describe('a URI', () => {
  test.each([
    'file:///srv/docs/a b.txt',
    'file:///a//b.c/..d',
    'file://share/docs/x',
    'file:///{path}',
    'https://x.example/a.b?c=..',
    'note:..',
    'urn:isbn:0451450523',
    'файл://кот',
  ])('%s leads where rules see it lead', (uri) => {
    expect(problemOfUri(uri)).toBeUndefined();
  });

  test.each([
    ['file:///srv/docs/.. ', CONTROLS],
    [' file:///srv/docs/x', CONTROLS],
    ['file:///srv/docs/.\t./x', CONTROLS],
    ['file:///srv/docs/.\n.', CONTROLS],
    ['file:///srv/docs/x\0', CONTROLS],
    ['file:../etc/passwd', STEPS],
    ['file:.', STEPS],
    ['http:../x', STEPS],
    ['../etc/passwd', STEPS],
    ['file:///srv/..', STEPS],
    ['file:///srv\\..\\etc', STEPS],
    ['file:///srv/%2e%2E/etc', STEPS],
    ['file:///srv%2f..%2fetc', STEPS],
    ['file:/etc/passwd', FILE],
    ['file:etc/passwd', FILE],
    ['FILE:///etc/passwd', FILE],
    ['file:\\\\/etc/passwd', FILE],
    ['file://localhost/etc/passwd', FILE],
    ['file://LOCALHOST/etc/passwd', FILE],
  ])('%j is refused: it may lead elsewhere', (uri, problem) => {
    expect(problemOfUri(uri)).toBe(problem);
  });
});
