class Baton < Formula
  desc "@SUMMARY@"
  homepage "@BASE_URL@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

@DOWNLOADS@

  def install
    bin.install "bin/baton"
    prefix.install Dir["lib", "share"]
  end

  def caveats
    "Connect your agents with: baton setup"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/baton --version")
  end
end
