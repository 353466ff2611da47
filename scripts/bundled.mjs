/** Libraries that are within the files of the package, not beside them. */

/**
 * Libraries in plain JavaScript of which nearly every command or start needs many files, or a large one. All others
 * are loaded from node_modules as ever.
 */
export const BUNDLED = ['commander', 'get-east-asian-width', 'ipaddr.js', 're2js', 'yaml', 'zod'];

/** Libraries of the dashboard. */
export const BUNDLED_IN_DASHBOARD = [
  'preact',
  '@preact/signals',
  '@preact/signals-core',
  '@tanstack/virtual-core',
  'uplot',
];
