/** Builds the dashboard into dist/web, whose files the gateway serves from memory. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  // The Content-Security-Policy allows nothing inline, and no file is so small that it is worth an exception.
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    target: ['chrome111', 'firefox114', 'safari16.4'],
  },
});
