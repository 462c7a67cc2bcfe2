"""Make reactions.txt, reactions by textbook schemes in canonical SMILES: `make_reactions.py > reactions.txt`.

Needs RDKit, which nothing else in the atlas does: models of reactions were trained on its canonical SMILES.
"""

from itertools import product
from random import Random

from rdkit.Chem import CanonSmiles

COUNT = 1500
SEED = 0
ARYL = (  # written so that what follows is bonded to the last atom
    "c1ccc(cc1)",
    "COc1ccc(cc1)",
    "Fc1ccc(cc1)",
    "Clc1ccc(cc1)",
    "Cc1ccc(cc1)",
    "N#Cc1ccc(cc1)",
    "FC(F)(F)c1ccc(cc1)",
    "c1cncc(c1)",
    "c1csc(c1)",
    "O=[N+]([O-])c1ccc(cc1)",
    "CC(=O)Nc1ccc(cc1)",
    "COC(=O)c1ccc(cc1)",
    "c1ccc2c(c1)ccc(c2)",
)
ALKYL = ("CC(C)", "CCC", "CC(C)(C)", "C1CCC(CC1)", "C[C@H](c1ccccc1)", "CC(C)C[C@@H](NC(=O)OC(C)(C)C)", "COCC")
AFTER_ARYL = (
    "c1ccccc1",
    "c1ccc(OC)cc1",
    "c1ccc(F)cc1",
    "c1cccnc1",
    "c1ccc2ccccc2c1",
    "c1ccc(Cl)c(C)c1",
    "c1ccsc1",
)
AFTER_ALKYL = (
    "C",
    "CC",
    "C(C)C",
    "Cc1ccccc1",
    "C1CC1",
    "CCOC",
    "CCN1CCOCC1",
    "[C@@H](C)c1ccccc1",
    "C1CCCCC1",
    "CC#N",
)
BEFORE, AFTER = ARYL + ALKYL, AFTER_ARYL + AFTER_ALKYL
SCHEMES = (
    (BEFORE, AFTER, "{a}C(=O)O.N{b}.CCN(C(C)C)C(C)C.CN(C)C=O>>{a}C(=O)N{b}"),  # amides
    (BEFORE, AFTER, "{a}C(=O)Cl.N{b}.CCN(CC)CC.ClCCl>>{a}C(=O)N{b}"),
    (BEFORE, AFTER_ALKYL, "{a}C(=O)O.O{b}.O=S(=O)(O)O>>{a}C(=O)O{b}"),  # esters, and back
    (BEFORE, AFTER_ALKYL, "{a}C(=O)O{b}.[Na+].[OH-].C1CCOC1>>{a}C(=O)O"),
    (ARYL, AFTER_ARYL, "{a}Br.OB(O){b}.O=C([O-])[O-].[Na+].[Na+].C1COCCO1>>{a}{b}"),  # Suzuki's coupling
    (BEFORE, AFTER, "{a}C=O.N{b}.[Na+].[BH4-].CO>>{a}CN{b}"),  # reductive amination
    (BEFORE, AFTER_ALKYL, "{a}CN{b}.CC(C)(C)OC(=O)OC(=O)OC(C)(C)C.ClCCl>>{a}CN({b})C(=O)OC(C)(C)C"),  # a group put on
    (BEFORE, AFTER_ALKYL, "{a}CN({b})C(=O)OC(C)(C)C.O=C(O)C(F)(F)F.ClCCl>>{a}CN{b}"),  # and taken off
    (BEFORE, AFTER_ARYL, "{a}CBr.O{b}.O=C([O-])[O-].[K+].[K+].CN(C)C=O>>{a}CO{b}"),  # ethers
    (ARYL, AFTER, "{a}S(=O)(=O)Cl.N{b}.c1ccncc1>>{a}S(=O)(=O)N{b}"),  # sulfonamides
    (BEFORE, AFTER, "{a}C=O.Br[Mg]{b}.C1CCOC1>>{a}C(O){b}"),  # Grignard's
)


def smiles(molecules: str) -> str:
    """Return molecules in canonical SMILES, in alphabetical order."""
    return ".".join(sorted(map(CanonSmiles, molecules.split("."))))


def main() -> None:
    """Print the reactions, a line each."""
    drawn = [(scheme, a, b) for before, after, scheme in SCHEMES for a, b in product(before, after)]
    Random(SEED).shuffle(drawn)
    for scheme, a, b in drawn[:COUNT]:
        left, right = scheme.format(a=a, b=b).split(">>")
        print(f"{smiles(left)}>>{smiles(right)}")


if __name__ == "__main__":
    main()
