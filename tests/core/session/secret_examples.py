"""Secrets in the forms that 34 vendors give them, and texts that only look like secrets.

They are made up from a fixed seed: a file with them in it would be refused by every forge.
"""

import base64
import random
import string
from collections.abc import Iterator

LETTERS, DIGITS = string.ascii_letters, string.digits
WORD = LETTERS + DIGITS
HEX = "0123456789abcdef"
_CHANCE = random.Random(20)


def chars(count: int, alphabet: str = WORD) -> str:
    return "".join(_CHANCE.choices(alphabet, k=count))


def base64_of(count: int, *, is_url: bool = False) -> str:
    encode = base64.urlsafe_b64encode if is_url else base64.b64encode
    return encode(_CHANCE.randbytes(count)).decode()


def pem() -> str:
    body = base64_of(900)
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----"


def web_token() -> str:
    parts = ('{"alg":"HS256","typ":"JWT"}', f'{{"sub":"{chars(12)}","iat":1516239022}}')
    encoded = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts]
    return ".".join((*encoded, base64_of(32, is_url=True).rstrip("=")))


def vendor_secrets() -> dict[str, str]:
    """One secret of each vendor, by the variable that people keep it in."""
    upper, lower = string.ascii_uppercase + DIGITS, string.ascii_lowercase + DIGITS
    base32 = string.ascii_uppercase + "234567"
    return {
        "AWS_ACCESS_KEY_ID": "AKIA" + chars(16, base32),
        "AWS_SECRET_ACCESS_KEY": base64_of(30),
        "GOOGLE_API_KEY": "AIza" + chars(35, WORD + "-_"),
        "AZURE_CLIENT_SECRET": f"{chars(3)}8Q~{chars(34)}",
        "GITHUB_TOKEN": "ghp_" + chars(36),
        "GITHUB_FINE_GRAINED_TOKEN": f"github_pat_{chars(22)}_{chars(59)}",
        "GITLAB_TOKEN": "glpat-" + chars(20, WORD + "-_"),
        "SLACK_BOT_TOKEN": f"xoxb-{chars(12, DIGITS)}-{chars(13, DIGITS)}-{chars(24)}",
        "STRIPE_SECRET_KEY": "sk_live_" + chars(24),
        "TWILIO_API_KEY": "SK" + chars(32, HEX),
        "SENDGRID_API_KEY": f"SG.{chars(22)}.{chars(43)}",
        "MAILGUN_API_KEY": "key-" + chars(32, HEX),
        "MAILCHIMP_API_KEY": f"{chars(32, HEX)}-us21",
        "NPM_TOKEN": "npm_" + chars(36),
        "PYPI_TOKEN": "pypi-AgEIcHlwaS5vcmc" + chars(150, WORD + "-_"),
        "RUBYGEMS_API_KEY": "rubygems_" + chars(48, HEX),
        "DIGITALOCEAN_TOKEN": "dop_v1_" + chars(64, HEX),
        "HEROKU_API_KEY": "HRKU-AA" + chars(58, WORD + "_-"),
        "SHOPIFY_ACCESS_TOKEN": "shpat_" + chars(32, HEX),
        "SQUARE_ACCESS_TOKEN": "sq0atp-" + chars(22, WORD + "-_"),
        "OPENAI_API_KEY": f"sk-proj-{chars(74)}T3BlbkFJ{chars(74)}",
        "ANTHROPIC_API_KEY": f"sk-ant-api03-{chars(93, WORD + '-_')}AA",
        "HF_TOKEN": "hf_" + chars(34, LETTERS),
        "DATABRICKS_TOKEN": f"dapi{chars(32, HEX)}-2",
        "NEW_RELIC_API_KEY": "NRAK-" + chars(27, upper),
        "GRAFANA_TOKEN": f"glsa_{chars(32)}_{chars(8, HEX)}",
        "VAULT_TOKEN": "hvs." + chars(95, WORD + "-_"),
        "LINEAR_API_KEY": "lin_api_" + chars(40, lower),
        "NOTION_TOKEN": f"ntn_{chars(11, DIGITS)}{chars(35)}",
        "ATLASSIAN_API_TOKEN": f"ATATT3xFfGF0{chars(171, WORD + '-_')}={chars(8, HEX.upper())}",
        "TELEGRAM_BOT_TOKEN": f"{chars(10, '123456789')}:AA{chars(33, WORD + '-_')}",
        "DOPPLER_TOKEN": "dp.pt." + chars(43),
        "POSTMAN_API_KEY": f"PMAK-{chars(24, HEX)}-{chars(34, HEX)}",
        "DATADOG_API_KEY": chars(32, HEX),
        "DISCORD_CLIENT_SECRET": chars(32, WORD + "-_"),
        "SESSION_JWT": web_token(),
        "TLS_KEY": pem(),
        "DB_PASSWORD": f"{chars(5, LETTERS)}-{chars(4, DIGITS)}-{chars(5, LETTERS)}",
    }


GITHUB_TOKEN = vendor_secrets()["GITHUB_TOKEN"]
"""One for other tests: rules of secrets see that `ghp_aaaa` is none."""


def true_examples() -> Iterator[tuple[str, str, str]]:
    """A file name, its text, and the secret in it."""
    _CHANCE.seed(21)
    for index in range(6):
        for name, secret in vendor_secrets().items():
            dashed = name.lower().replace("_", "-")
            forms = (
                (".env", f"PORT=8080\n{name}={secret}\nDEBUG=1\n"),
                ("deploy.sh", f"set -e\nexport {name}='{secret}'\nmake deploy\n"),
                ("config.yaml", f'service:\n  {dashed}: "{secret}"\n  retries: 3\n'),
                ("settings.json", f'{{\n  "{name.lower()}": "{secret}",\n  "port": 80\n}}\n'),
                ("settings.py", f'import os\n\n{name} = "{secret}"\nRETRIES = 3\n'),
                ("client.ts", f'const client = connect({{ {name.lower()}: "{secret}" }});\n'),
            )
            yield *forms[index], secret
    for user, host in (("app", "db.internal:5432/app"), ("svc", "queue.example.com/jobs")):
        secret = chars(14)
        yield "compose.yml", f"DATABASE_URL: postgres://{user}:{secret}@{host}\n", secret


def look_alikes() -> Iterator[tuple[str, str]]:
    """A file name, and a text without a secret."""
    _CHANCE.seed(22)
    for _ in range(8):
        yield from (
            ("package-lock.json", f'"integrity": "sha512-{base64_of(64)}"'),
            ("uv.lock", f'hash = "sha256:{chars(64, HEX)}"'),
            ("Dockerfile", f"FROM python@sha256:{chars(64, HEX)}"),
            ("notes.md", f"Fixed in commit {chars(40, HEX)}, see the change log."),
            (
                "ids.py",
                f'SESSION = "{chars(8, HEX)}-{chars(4, HEX)}-4{chars(3, HEX)}-{chars(12, HEX)}"',
            ),
            ("index.html", f'<img src="data:image/png;base64,{base64_of(90)}">'),
            ("id_rsa.pub", f"ssh-rsa AAAAB3NzaC1yc2E{base64_of(120)} me@example.com"),
            (
                "server.crt",
                f"-----BEGIN CERTIFICATE-----\n{base64_of(48)}\n-----END CERTIFICATE-----",
            ),
            ("trace.log", f"trace_id={chars(32, HEX)} span_id={chars(16, HEX)} status=200"),
            ("response.http", f'ETag: "{chars(32, HEX)}"'),
            ("config.tf", f'ami = "ami-{chars(17, HEX)}"'),
            ("page.html", f'<script integrity="sha384-{base64_of(48)}" src="/app.js"></script>'),
        )
    yield from ((name, text) for name, texts in _TEXTS.items() for text in texts)


_TEXTS = {
    "app.py": (
        'token = os.environ["GITHUB_TOKEN"]',
        'password = getpass.getpass("Password: ")',
        "def log_in(token: SessionToken, password: Password) -> None:",
        "api_key: str | None = None",
        "secret_key = settings.secret_key",
        'raise ValueError("the password must have 8 characters")',
        'PASSWORD_FIELD = "user_password"',
        "token = secrets.token_urlsafe(32)",
        'headers = {"Authorization": f"Bearer {token}"}',
        'parser.add_argument("--api-key", help="the key of the provider")',
        'TOKEN_URL = "https://auth.example.com/oauth2/token"',
        "self.next_token = tokens[index + 1]",
        'cache_key = f"user:{user_id}:profile"',
        'assert response.json() == {"token": "invalid"}',
        'KEY_VARIABLES = {"openai": "OPENAI_API_KEY"}',
        "keyboard_shortcut = 'ctrl+shift+alt+k'",
        'secret_name = "projects/app/secrets/database"',
        "is_password_correct = check_password(password, user.password_hash)",
        'primary_key = Column("id", Integer, primary_key=True)',
        "sort_key = operator.attrgetter('created_at')",
    ),
    "client.ts": (
        "const token = process.env.API_TOKEN;",
        "type Token = { kind: TokenKind; text: string };",
        "const passwordInput = document.querySelector('#password');",
        "import { secretStorage } from './secret-storage';",
        "const key = `${prefix}:${name}`;",
        "localStorage.removeItem('access_token');",
        "if (!apiKey) throw new Error('API key is missing');",
        "export const tokenTypes = ['identifier', 'operator', 'literal'];",
        'const label = t("settings.password.change.title");',
        "<PasswordField autoComplete='current-password' />",
        "const publicKey = await crypto.subtle.importKey('spki', data, algorithm, true, []);",
        "keyframes: { '0%': { opacity: 0 }, '100%': { opacity: 1 } },",
    ),
    "style.css": (
        ".sk-toggleable__label-arrow { color: #696969; }",
        ".sk-estimator-doc-link.fitted:hover { background: #d4ebff; }",
        "#sk-container-id-1 div.sk-toggleable__content { max-height: 0; }",
        ".token.keyword { color: var(--color-token-keyword); }",
    ),
    ".env.example": (
        "API_KEY=your-api-key-here",
        "DATABASE_URL=postgres://user:password@localhost:5432/app",
        "SECRET_KEY=changeme",
        "GITHUB_TOKEN=<your token>",
        "OPENAI_API_KEY=sk-...",
        "SLACK_TOKEN=xoxb-your-token",
        "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE",
        "STRIPE_KEY=sk_test_xxxxxxxxxxxxxxxxxxxxxxxx",
        "DB_PASSWORD=${DB_PASSWORD}",
        "PASSWORD_MIN_LENGTH=12",
        "TOKEN_EXPIRY_SECONDS=86400000",
        "SECRET_BACKEND=hashicorp-vault",
    ),
    "ci.yml": (
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "password: ${{ secrets.DOCKER_PASSWORD }}",
        "key: cache-${{ runner.os }}-${{ hashFiles('uv.lock') }}",
        "uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683",
        "image: postgres://postgres:postgres@postgres:5432/test",
        "secretName: tls-certificate-production",
        "password_file: /run/secrets/db_password",
        "tokenizer: unicode61 remove_diacritics 2",
        "secretKeyRef: { name: database-credentials, key: password }",
        "- name: rotate the access token every 30 days",
    ),
    "guide.md": (
        "Create a token with the scope `repo` and store it in `GITHUB_TOKEN`.",
        "The password: at least 12 characters.",
        "curl -H 'Authorization: Bearer $TOKEN' https://api.example.com/v1/items",
        "git clone https://github.com/example/project.git",
        "Tokens begin with `ghp_`, `glpat-` or `xoxb-`.",
        "See https://example.com/docs/security#access-token-expiration for details.",
        "postgres://USER:PASSWORD@HOST:PORT/DATABASE",
        "`https://user:<password>@example.com/` is not supported any more.",
        "The key risk is latency; the key result is throughput.",
        "An API key looks like `sk-` followed by 48 characters.",
        "Secret: nobody reads release notes.",
        "mailto:token@example.com?subject=password%20reset",
    ),
    "data.sql": (
        "CREATE TABLE tokens (id uuid PRIMARY KEY, token_hash bytea NOT NULL);",
        "ALTER ROLE app WITH PASSWORD :'password';",
        "INSERT INTO settings (key, value) VALUES ('theme', 'dark');",
        "SELECT api_key_id, created_at FROM api_keys WHERE revoked_at IS NULL;",
        "CREATE INDEX idx_access_tokens_user_id ON access_tokens (user_id);",
        "GRANT USAGE ON SEQUENCE tokens_id_seq TO app_readwrite;",
    ),
    "main.go": (
        'apiKey := os.Getenv("API_KEY")',
        "type TokenSource interface { Token() (*Token, error) }",
        'return nil, fmt.Errorf("parse token: %w", err)',
        "keys := make([]string, 0, len(m))",
        'flag.StringVar(&passwordFile, "password-file", "/etc/app/password", "")',
        "case token.IDENT, token.INT, token.FLOAT:",
        'secretRef := corev1.SecretReference{Name: "registry-credentials"}',
        "publicKeyBytes, err := x509.MarshalPKIXPublicKey(&key.PublicKey)",
    ),
    "app.properties": (
        "spring.datasource.password=${DB_PASSWORD}",
        "security.token.header=X-Auth-Token",
        "i18n.password.reset=Reset your password",
        "server.ssl.key-store=classpath:keystore.p12",
        "security.oauth2.client.authorized-grant-types=authorization_code,refresh_token",
        "auth.key.algorithm=RSA-OAEP-256",
    ),
    "test_login.py": (
        'client.login(username="ada", password="secret")',
        'assert "password" not in response.text',
        'TOKEN = "test-token"',
        'monkeypatch.setenv("API_KEY", "dummy")',
        'user = make_user(password="password123")',
        'fake_token = "x" * 40',
        '"Authorization": "Basic dXNlcjpwYXNz"',
        'secret = "placeholder-secret-value"',
    ),
    "model.json": (
        '"tokenizer_class": "PreTrainedTokenizerFast"',
        '"eos_token": "<|endoftext|>", "pad_token": "<pad>"',
        '"key": "value", "secret": false, "token": null',
        '"keywords": ["security", "tokens", "passwords"]',
        '"password": {"type": "string", "minLength": 12}',
        '"$id": "https://example.com/schemas/access-token.schema.json"',
    ),
}
