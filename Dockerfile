# Builds with the compiler, ships without it. Node.js 20, because the native HTTP library of the lock file is made for it.
FROM node:20-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM node:20-bookworm-slim
ENV NODE_ENV=production \
    SVC_HTTP_ADDR=0.0.0.0:8080 \
    SVC_GRPC_ADDR=0.0.0.0:50051 \
    SVC_DATA_DIR=/data
WORKDIR /app
COPY --from=build --chown=root:root /app/package.json ./
COPY --from=build --chown=root:root /app/node_modules node_modules
COPY --from=build --chown=root:root /app/dist dist
COPY --from=build --chown=root:root /app/proto proto
COPY --from=build --chown=root:root /app/web web
COPY --from=build --chown=root:root /app/examples examples
RUN mkdir /data && chown node:node /data && ln -s /app/dist/src/cli/main.js /usr/local/bin/svc
USER node
VOLUME /data
EXPOSE 8080 50051
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.SVC_HTTP_ADDR.split(':').pop() + '/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["svc"]
CMD ["serve"]
