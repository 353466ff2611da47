// Builds the documents into a site of plain files, which any web server serves from any path: npm run docs:site
// Ends with status 1 where a link leads nowhere, or a document is in no section.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import MarkdownIt from 'markdown-it';
import anchor from 'markdown-it-anchor';
import { SECTIONS } from './site/pages.mjs';
import { commandReference, grpcReference, httpReference } from './site/references.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const [out = join(ROOT, 'dist', 'site')] = process.argv.slice(2);
const REFERENCES = {
  'reference/http': httpReference,
  'reference/grpc': grpcReference,
  'reference/cli': commandReference,
};

const markdown = new MarkdownIt({ html: true });
/** As GitHub makes them, so that the same links lead to the same places. */
const slugify = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
markdown.use(anchor, { slugify, level: [1, 2, 3, 4], permalink: anchor.permalink.headerLink() });
const escaped = markdown.utils.escapeHtml;

const problems = [];
/** By its path in the repository: where it is on the site, its text, and after rendering its HTML and headings. */
const pages = new Map();
for (const [section, paths] of SECTIONS) {
  for (const path of paths) {
    const made = REFERENCES[path];
    if (made === undefined && !existsSync(join(ROOT, path))) continue;
    const text = made === undefined ? readFileSync(join(ROOT, path), 'utf8') : await made(ROOT);
    const url = path === 'README.md' ? 'index.html' : `${path.replace(/\.md$/, '')}.html`;
    pages.set(path, { section, path, url, text, title: /^# (.+)$/m.exec(text)?.[1].replaceAll('`', '') ?? path });
  }
}
for (const name of readdirSync(join(ROOT, 'docs')))
  if (name.endsWith('.md') && !pages.has(`docs/${name}`)) problems.push(`docs/${name} is in no section`);

/** Linked files that are not pages: copied, or a list of a folder's files. */
const files = new Set();
for (const page of pages.values()) render(page);
for (const page of pages.values()) page.html = page.html.replaceAll(/(href|src)="([^"]*)"/g, checkedLink(page));

function render(page) {
  const tokens = markdown.parse(page.text, {});
  page.headings = tokens.flatMap((token, at) =>
    token.type === 'heading_open'
      ? [{ level: Number(token.tag.slice(1)), id: token.attrGet('id'), title: plain(tokens[at + 1]), at }]
      : [],
  );
  page.sections = page.headings.map(({ id, title, at }, number) => ({
    title,
    page: page.title,
    url: `${page.url}#${id}`,
    text: tokens
      .slice(at, page.headings[number + 1]?.at)
      .map((token) => token.content)
      .join(' '),
  }));
  page.html = markdown.renderer.render(tokens, markdown.options, {});
  page.anchors = new Set([...page.html.matchAll(/\bid="([^"]+)"/g)].map(([, id]) => id));
}

function plain(inline) {
  return inline.children.map(({ type, content }) => (/^(?:text|code_inline)$/.test(type) ? content : '')).join('');
}

/** Rewrites a link between documents to one between pages. */
function checkedLink(page) {
  return (whole, attribute, link) => {
    const [, path = '', hash] = /^([^#]*)(?:#(.*))?$/.exec(link) ?? [];
    if (/^[a-z]+:/.test(path)) return whole;
    const source = page.path.startsWith('reference/') ? `docs/${page.path}` : page.path;
    const to = path === '' ? page.path : normalize(join(dirname(page.path), decodeURI(path))).replace(/\/$/, '');
    const target = pages.get(to);
    if (target === undefined && !existsSync(join(ROOT, to))) problems.push(`${link} in ${source} leads nowhere`);
    if (target !== undefined && hash !== undefined && !target.anchors.has(decodeURIComponent(hash)))
      problems.push(`${link} in ${source}: no such heading`);
    if (target === undefined) files.add(to);
    const url = target?.url ?? fileUrl(to);
    const shown = url === page.url ? '' : relative(dirname(page.url), url);
    return `${attribute}="${shown}${hash === undefined ? '' : `#${hash}`}"`;
  };
}

function fileUrl(path) {
  const isFolder = existsSync(join(ROOT, path)) && statSync(join(ROOT, path)).isDirectory();
  return isFolder ? `files/${path}/index.html` : `files/${path}`;
}

/** A link to a file of the repository shows the file, one to a folder lists it. */
function copyFile(path) {
  const from = join(ROOT, path);
  const to = join(out, fileUrl(path));
  mkdirSync(dirname(to), { recursive: true });
  if (!statSync(from).isDirectory()) return cpSync(from, to);
  const names = readdirSync(from, { withFileTypes: true }).filter(
    ({ name }) => !/^(?:node_modules|dist|\.)/.test(name),
  );
  for (const { name } of names.filter((entry) => entry.isFile())) cpSync(join(from, name), join(dirname(to), name));
  const links = names.map((entry) =>
    entry.isFile()
      ? `<li><a href="${encodeURI(entry.name)}">${escaped(entry.name)}</a>`
      : `<li>${escaped(entry.name)}/`,
  );
  writeFileSync(
    to,
    `<!doctype html><meta charset="utf-8"><title>${escaped(path)}</title><h1>${escaped(path)}</h1><ul>${links.join('')}</ul>`,
  );
}

function layout(page) {
  const base = '../'.repeat(page.url.split('/').length - 1);
  const linkTo = (to) =>
    `<li><a href="${base}${to.url}"${to === page ? ' aria-current="page"' : ''}>${escaped(to.title)}</a></li>`;
  const navigation = SECTIONS.map(([section]) => {
    const own = [...pages.values()].filter((each) => each.section === section);
    return own.length === 0 ? '' : `<h2>${section}</h2><ul>${own.map(linkTo).join('')}</ul>`;
  }).join('');
  const outline = page.headings
    .filter(({ level }) => level === 2)
    .map(({ id, title }) => `<li><a href="#${id}">${escaped(title)}</a></li>`);
  return `<!doctype html>
<html lang="en" data-base="${base}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(page.title)}${page.url === 'index.html' ? '' : ' · svc-gateway'}</title>
<link rel="stylesheet" href="${base}assets/style.css">
<script defer src="${base}assets/minisearch.js"></script>
<script defer src="${base}assets/search.js"></script>
</head>
<body>
<aside>
<a class="skip" href="#content">Skip to the content</a>
<input id="search" type="search" placeholder="Search (/)" aria-label="Search">
<ul id="found" aria-live="polite"></ul>
<nav aria-label="Pages">${navigation}</nav>
</aside>
<main id="content">
${page.html}
</main>
<nav class="outline" aria-label="On this page"><ul>${outline.join('')}</ul></nav>
</body>
</html>
`;
}

if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}
rmSync(out, { recursive: true, force: true });
mkdirSync(join(out, 'assets'), { recursive: true });
for (const name of ['style.css', 'search.js']) cpSync(join(ROOT, 'scripts', 'site', name), join(out, 'assets', name));
cpSync(join(ROOT, 'node_modules', 'minisearch', 'dist', 'umd', 'index.js'), join(out, 'assets', 'minisearch.js'));
for (const page of pages.values()) {
  mkdirSync(dirname(join(out, page.url)), { recursive: true });
  writeFileSync(join(out, page.url), layout(page));
}
for (const path of files) copyFile(path);
const sections = [...pages.values()].flatMap((page) => page.sections).map((section, id) => ({ id, ...section }));
writeFileSync(join(out, 'search.json'), JSON.stringify(sections));
console.log(`${relative(process.cwd(), out) || out}: ${pages.size} pages, ${files.size} files they link to`);
