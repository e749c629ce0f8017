// npm's oidc-provider with people, groups and its own sign-in pages: node oidc_provider.mjs MODULES PORT
// /-/rotate makes new keys, /-/set?backchannel=URL names where its logout tokens go.
import http from 'node:http'
import { generateKeyPairSync } from 'node:crypto'
import { pathToFileURL } from 'node:url'

const [modules, port] = process.argv.slice(2)
const { Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`))
const issuer = `http://127.0.0.1:${port}`
let backchannel
let keys = 0

const groups = {
  anna: ['hr', 'staff'], root: ['admins'], many: Array.from({ length: 10000 }, (_, n) => `group ${n}`),
}

function make() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'larmspider', client_secret: 'client-secret', redirect_uris: [`${issuer}/none`],
      post_logout_redirect_uris: [`${issuer}/none`], backchannel_logout_uri: backchannel,
      backchannel_logout_session_required: true,
    }],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: `key-${++keys}`, use: 'sig', alg: 'RS256' }] },
    cookies: { keys: ['a key for cookies'] },
    claims: { openid: ['sub', 'sid'], profile: ['preferred_username'], groups: ['groups'] },
    scopes: ['openid', 'profile', 'groups'],
    conformIdTokenClaims: process.env.USERINFO === 'yes',
    features: { backchannelLogout: { enabled: true }, rpInitiatedLogout: { enabled: true } },
    fetch: (url, { dispatcher, ...options }) => fetch(url, options), // its own refuses loopback
    pkce: { required: () => true },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: `${id}@corp`, groups: groups[id] }),
    }),
  })
  provider.Client.prototype.redirectUriAllowed = () => true
  provider.Client.prototype.postLogoutRedirectUriAllowed = () => true
  provider.on('backchannel.error', (_, error) => console.error('backchannel', error))
  return provider.callback()
}

let answer = make()
http.createServer((request, response) => {
  const url = new URL(request.url, issuer)
  if (!url.pathname.startsWith('/-/')) return answer(request, response)
  if (url.searchParams.has('backchannel')) backchannel = url.searchParams.get('backchannel')
  answer = make()
  return response.end('done')
}).listen(Number(port), '127.0.0.1')
